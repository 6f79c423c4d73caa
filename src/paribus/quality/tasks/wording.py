"""Words that readers of letters and of numbers share: what an answer is called, and what supposes rather than says."""

from __future__ import annotations

import re

ANSWER = r"(?:(?<![^\W_])(?:answer|respuesta|réponse|antwort|risposta|resposta|ответ)(?![^\W_])|答案|答え|정답)"
"""What an answer is called, in the languages that models slip into."""

IS = (
    r"(?:\b(?:(?:will|would|must|should|can|could|may|has to|have to)(?: only)? be|"
    r"(?:turns?|comes?|works?) out (?:to be|to)|comes? to|is|are|was|equals?|es|est|ist|lautet|è|é)"
    r"(?:\b|(?=n['’]t))|是|为|為|は|은|는)"
)
"""What stands between the word for an answer and the answer."""

_SUPPOSED = re.compile(
    r"\b(?:if|whether|unless|(?<!\bI )(?:suppose|supposing|assume|assuming|imagine))\b"
    r"(?:[^\w,.;:!?\n]|\b(?:that|the|this|our|correct|right|true|final|option|choice|answer|it|is|are|was|were|only|instead)\b)*$",
    re.IGNORECASE,
)
_CLAUSE = 100


def is_supposed(text: str, begin: int) -> bool:
    """Whether what begins at a place of a text is only supposed: "if the", "whether", "suppose that" before it."""
    return _SUPPOSED.search(text[max(0, begin - _CLAUSE) : begin]) is not None
