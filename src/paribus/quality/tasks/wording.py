"""Words by their kind, for readers of letters and of numbers: what an answer is called, what stands between it and its
value, what supposes rather than says, what takes an earlier answer back, what an answer is the answer to.

Each kind is one list, meant to be whole: a word that is missing belongs into its list, never into a pattern of its own.
"""

from __future__ import annotations

import re


def listed(words: str) -> frozenset[str]:
    """The words of a list that commas part."""
    return frozenset(" ".join(word.split()) for word in words.split(",")) - {""}


def any_of(words: str) -> str:
    """A pattern that matches any word of a list, the longer one first; an apostrophe may be straight or curled."""
    found = sorted(listed(words), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word).replace("\\ ", r"\s") for word in found).replace("'", "['’]") + ")"


ANSWER = r"(?:(?<![^\W_])(?:answer|respuesta|réponse|antwort|risposta|resposta|ответ)(?![^\W_])|答案|答え|정답)"
"""What an answer is called, in the languages that models slip into."""

IS = (
    r"(?:\b(?:(?:will|would|must|should|can|could|may|has to|have to|had to|ought to|needs to|is going to)"
    r"(?: only)? be|(?:turns?|comes?|works?) out (?:to be|to)|comes? to|amounts to|is|are|was|equals?|"
    r"becomes?|became|remains?|es|est|ist|lautet|è|é)(?:\b|(?=n['’]t))|是|为|為|は|은|는)"
)
"""What stands between the word for an answer and the answer."""

OPENING_WORDS = any_of(
    # What concludes or joins.
    "so, thus, hence, therefore, then, finally, and, but, now, ergo, consequently, accordingly, overall, altogether,"
    # What determines.
    "the, our, my, this, its, a, an,"
    # What makes it the answer that counts.
    "final, correct, right, true, real, actual, proper, valid, exact, precise, full, complete, required, desired,"
    "requested, numerical, numeric, integer, ultimate, definitive, concluding, resulting, only, single, unique, best,"
    # What makes it the one that takes another one's place.
    "new, newer, newest, revised, updated, corrected, amended, fixed, improved, adjusted, modified, reconsidered,"
    "recomputed, recalculated, rectified, repaired, replacement, latest,"
    # The same in the languages that models slip into.
    "la, le, der, die, das, el, il, o, por, tanto, donc, also, 因此, 所以, 故, 最终"
)
"""Words that may stand between the begin of a sentence and the word for an answer, where the sentence is the answer."""

ADVERBS = any_of(
    "therefore, thus, hence, so, then, now, again, also, below, finally, consequently, accordingly, simply, just, only,"
    "merely, exactly, precisely, indeed, clearly, obviously, evidently, certainly, surely, definitely, undoubtedly,"
    "necessarily, of course, actually, really, truly, in fact, instead, rather, still, always, most likely, likely,"
    "most probably, probably, presumably, apparently, given by, equal to, the integer, the number, integer"
)
"""Words between "the answer is" and a number that change nothing of it."""

PREPOSITIONS = listed("to, for, in, of, at, on, with, without, under, by, from, over, within, if, when, where")
"""Words behind which stands what an answer is about: "the answer to part one"."""

ITSELF = listed(
    # What determines, and what makes it the one that was asked.
    "the, this, our, that, a, an, your, given, original, initial, whole, entire, full, stated, actual, above, main,"
    "overall, asked, posed, required, requested, desired, specified, wanted, simplest, lowest, reduced, final,"
    "standard, correct, proper, exact, nearest, we, were, was, are,"
    # What was asked, what an answer looks like, and words for "all in all".
    "problem, question, exercise, task, puzzle, challenge, prompt, query, form, format, terms, notation, integer,"
    "number, digits, aime, total, all, fact, end, conclusion, short, summary, itself"
)
"""Words for the question itself: an answer "to the original problem" or "in the required form" is the answer."""

_PERSON = (
    r"\b(?:i|we)\s(?:(?:have|had|did|also|just|simply|accidentally|mistakenly|wrongly|then|clearly|actually)\s){0,2}"
)
_MISTAKES = any_of(
    "mistake, error, slip, slip-up, oversight, typo, blunder, miscount, miscalculation, misreading, omission"
)
_SEEN = r"\b(?:made|found|spotted|noticed|i see|there(?: is| was|['’]s)) (?:a|an|my|one) (?:[^\W\d_]{1,20} ){0,2}"
_LET_ME = r"\b(?:let (?:me|us)|let['’]s|i(?:['’]ll| (?:must|will|should|need to|have to))) "
CORRECTION = (
    r"(?:\b(?:"
    # Words that stop: the one who writes takes a breath and says something else.
    + any_of(
        "wait, actually, oops, whoops, sorry, apologies, my bad, hold on, hang on, scratch that, strike that,"
        "never mind, nevermind, on second thought, on second thoughts, on reflection, on further reflection,"
        "on closer inspection, thinking again, looking again, come to think of it, correction, corrections, corrected,"
        "corrigendum, erratum, errata, revision, revised, amended, amendment"
    )
    + r"|no(?=\s*[,.!:—–-])|(?:edit|update|addendum)(?=[\W_]*:))"
    # What the one who writes did wrong.
    + rf"|{_PERSON}(?:mis[a-z]{{1,15}}|(?:over|under|double)[- ]?count(?:ed)?|"
    + any_of(
        "forgot, forgotten, forget, overlooked, neglected, omitted, left out, skipped over, failed to, erred, slipped,"
        "messed up, mixed up, confused, was wrong, were wrong, was mistaken, was off, was too quick, was too hasty"
    )
    + rf")|\bmy {_MISTAKES}|{_SEEN}{_MISTAKES}"
    # What is said of the answer before.
    + r"|\b(?:that|this|which|it|the above|my answer)(?:['’]s| is| was) "
    + any_of("wrong, incorrect, not right, not correct, mistaken, a mistake, an error, in error, off by")
    + r"(?! to\b)|\b(?:that|this|it) (?:is|was)n['’]t (?:quite )?(?:right|correct)"
    # What the one who writes will do about it.
    + rf"|{_LET_ME}{any_of('correct, fix, revise, amend, rectify, reconsider, redo, retract, recount')}"
    + r")(?![^\W_])"
)
"""What takes an earlier answer back."""

_SUPPOSED = re.compile(
    r"\b(?:if|whether|unless|(?:in|for|of|to|at)\swhich|whose|(?<!\bI )(?:suppose|supposing|assume|assuming|imagine))\b"
    r"(?:[^\w,.;:!?\n]|\b(?:that|the|this|our|correct|right|true|final|option|choice|answer|it|is|are|was|were|only|instead)\b)*$",
    re.IGNORECASE,
)
_CLAUSE = 100


def is_supposed(text: str, begin: int) -> bool:
    """Whether what begins at a place of a text is only supposed, or said of a case: "if the", "whether", "suppose
    that", "in which the" before it."""
    return _SUPPOSED.search(text[max(0, begin - _CLAUSE) : begin]) is not None


def is_aside(words: str) -> bool:
    """Whether words that belong to "the answer" make it one to something else than what was asked: "to the smaller
    case", "in degrees"; "to the problem", "as an integer" don't."""
    found = re.findall(r"[^\W\d_]+", words.lower())
    about = next((n for n, word in enumerate(found) if word in PREPOSITIONS), len(found))
    return not ITSELF.issuperset(word for word in found[about:] if word not in PREPOSITIONS)
