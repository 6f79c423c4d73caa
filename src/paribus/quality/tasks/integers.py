"""One integer as models write it: what only changes its looks is dropped, what makes another number of it is refused.

`025`, `25.`, `25.0`, `\\text{25}`, `$25$`, `25_{10}`, `25 \\pmod{1000}`, `\\$25`, `25\\text{ cm}^2` are 25. Behind a
number may stand a degree sign, a percent sign, a unit or a remark in brackets; what makes another number of it (`25x`,
`25\\pi`, "25 or 26", "2 digits", "1 of 999", "5 times 5") may not. Of an equation (`x = 25`, `25 = m+n`) the last
member that is a number counts; several unknowns (`x = 25, y = 3`) are no integer.
"""

from __future__ import annotations

import re

from paribus.quality.tasks.wording import IS

# Groups that give nothing back (`*+`) keep every search linear in the text, whatever a model repeats.
_SHOW = re.compile(
    r"\\(?:(?:text)?color\s*\{[a-z]*\}|(?:begin|end)\s*\{[a-z]+\*?\}(?:\{[clr|]*\})?|"
    r"(?:displaystyle|textstyle|left|right|big|Big|bigg|Bigg|bf|rm|it|tiny|scriptsize|"
    r"footnotesize|small|normalsize|large|Large|LARGE|huge|Huge|boldsymbol|bm|mathbf|mathrm|mathit|mathsf|mathtt|mathbb|"
    r"mathcal|math|operatorname|emph|underline|boxed|fbox|framebox|checkmark|square|blacksquare|qed|Box)(?![A-Za-z])|"
    r"quad|qquad|[,;:! ()\[\]$])|[✅✓✔■□∎\U0001f000-\U0001faff]"
)
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mbox|hbox)(?![A-Za-z])")
_CIRCLE = re.compile(r"(?:\^\s*+)?(?:\{\s*+)?\\circ(?![A-Za-z])(?:\s*+\})?")
_THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|\\text\{,\}|,\\!|\\,)(?=\d{3}(?!\d))")
_RELATION = re.compile(
    r"=|≡|≈|→|⇒|\\(?:equiv|approx|to|rightarrow|Rightarrow|implies)(?![A-Za-z])|"
    r",?\s*\b(?:which|that) (?:is|equals|gives|makes)\b|\bi\.e\.,?|\bequals\b|\bgiving\b"
)
_SEVERAL = re.compile(r"\d\W{0,4}(?:[,;&]|\band\b)\W*[A-Za-z]\s*=[^=]*$")
_MODULUS = re.compile(r"[,(\s]*(?:\\pmod|\\bmod|\\mod|\bmod(?:ulo)?\b)\s*\d+\s*\)?\s*$")
_BASE_TEN = re.compile(r"_\s*(?:10|ten)\s*$")
_REMARK = re.compile(r"\s\(\s*[^\W\d_]{2}[^()]*\)\s*$")
_LABEL = re.compile(r"^(?:the )?(?:final )?answer\s*(?:is\b)?\s*[:=]?\s*", re.IGNORECASE)
_OTHER = (
    r"(?:pi|plus|minus|times|over|sqrt|or|to|choose|factorial|digits?|of|more|less|fewer|larger|smaller|greater|bigger|"
    r"higher|lower|if|unless)\b"
)
_LINKING = r"(?:and|but|so|then|far|because|since|as|when|where|while|which|that|with|we|is|was|are|in the)\b"
_WORD = rf"(?!{_OTHER})[^\W\d_]{{2,}}"
_UNIT = rf"(?!{_LINKING}){_WORD}(?:\s*\^\s*[23])?"
_NUMBER = r"[+]?(?P<minus>-?)\s*(?P<digits>\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.0*)?(?![\d.,]*\d)"
_DEGREES = r"(?:\s*(?:°|%|\\?degree\b))?"
_WHOLE = re.compile(rf"{_NUMBER}{_DEGREES}(?:\s+{_UNIT}(?:[\s-]+{_UNIT})*+)?\s*[.,;:]*\s*", re.IGNORECASE)
_STATED = re.compile(
    rf"{_NUMBER}{_DEGREES}(?!\s*(?:and|&)\s*(?:\w+\s*=\s*)?\W{{0,3}}\d)"
    rf"(?=\s*$|\s*[.,;:)\]}}'\"”’|<—–](?!\d)|!\W*$|\s+(?:{_WORD}|[aI]\b)|\s*\(\s*{_WORD}|\s+-\s+{_WORD}|"
    r"\s*\\[pb]mod|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(r"\b(?:so|thus|hence|therefore|giving|that is|i\.e\.)(?![^\W_])", re.IGNORECASE)
_DEFINITIONS = re.compile(r",\s*(?:where\b|with\s\W*[A-Za-z]\s*=)")
_EXPLANATION = re.compile(r"[,(]\s*(?:where|with|since|because|as|for|given|using|when|taking|from)\b", re.IGNORECASE)
_ENDS = re.compile(r"\d[\s.)\]}*_`$\\]*$")
_FINALLY = re.compile(
    rf"^.*(?:{IS}|\b(?:be|get|gives?|obtain|yields?|conclude)\b|:)\s*(?:exactly |precisely |just )?(\S[^:]*)$",
    re.IGNORECASE,
)


def as_integer(text: str) -> int | None:
    """The integer that a final answer states, or null: `025`, `\\text{25}`, `x = 25`, `1{,}000`, `25^\\circ`."""
    looks = _REMARK.sub("", looks_only(text))
    if _SEVERAL.search(looks):
        return None
    values = (_whole(member) for member in reversed(_RELATION.split(looks)))
    return next((value for value in values if value is not None), None)


def concluded(sentence: str) -> int | None:
    """The integer with which a sentence ends: "so m + n = 25", "the sum is 25", "25"."""
    last = _DEFINITIONS.split(looks_only(sentence), maxsplit=1)[0]
    if _SEVERAL.search(last) and not (_ENDS.search(last) and _CONCLUSION.search(last)):
        return None
    last = _RELATION.split(last)[-1]
    value = _whole(last)
    match = _FINALLY.search(last) if value is None else None
    return _whole(match.group(1)) if match else value


def chained(sentence: str) -> int | None:
    """The last integer of a chain ("m+n = 7+18 = 25"), words behind it aside ("25, since 24 + 1 = 25")."""
    looks = looks_only(sentence)
    ends = [match.end() for match in _CONCLUSION.finditer(looks)]
    if ends and _ENDS.search(looks) and (value := as_integer(looks[ends[-1] :].lstrip(" ,:"))) is not None:
        return value
    # What letters stand for is no part of a chain: "m+n = 25, where m = 7, n = 18".
    said = _EXPLANATION.split(looks, maxsplit=1)[0]
    if _SEVERAL.search(said):
        return None
    return _chain(looks) if (number := _chain(said)) is None else number


def _chain(looks: str) -> int | None:
    """The last integer of a chain; null for several unknowns."""
    number: int | None = None
    for member in [] if _SEVERAL.search(looks) else _RELATION.split(looks):
        words = member.strip(" *_`'\"([{:&")
        match = _STATED.match(words)
        if match:
            number = _value(match)
            if _MODULUS.sub("", words[match.end() :]).strip(" .,;:!)]}'\"”’|"):
                break  # "25, since 24 + 1 = ...": what follows explains it.
    return number


def looks_only(text: str) -> str:
    """Text without what changes only its looks in TeX and Markdown; words that TeX sets as text get blanks around."""
    text = _TEXT.sub(" ", _THOUSANDS.sub("", text).replace("\\%", "%").replace("。", "."))
    text = (
        re.sub(r"[{}]", " ", _SHOW.sub(" ", _CIRCLE.sub("°", text)))
        .replace("$", "")
        .replace("**", "")
        .replace("__", "")
        .replace("~", " ")
    )
    return re.sub(r"\s+", " ", text)


def _whole(body: str) -> int | None:
    """The integer that words are, with nothing else beside it but what the head of this module allows."""
    body = _REMARK.sub("", _BASE_TEN.sub("", _MODULUS.sub("", body.replace("&", " ").strip(" .,;:`'\""))))
    for _ in range(4):
        body = body.strip(" `'\"*_.,;:")
        if len(body) >= 2 and (body[0], body[-1]) in {("{", "}"), ("(", ")"), ("[", "]")}:
            body = body[1:-1]
    match = _WHOLE.fullmatch(re.sub(r"\s+", " ", _LABEL.sub("", body)).strip())
    return _value(match) if match else None


def _value(match: re.Match[str]) -> int:
    return int(match["minus"] + match["digits"].replace(",", ""))
