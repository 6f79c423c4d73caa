"""The statistics of our own prompts that their card holds. Run it to put them in anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from paribus.catalog import KINDS, Catalog, SetPrompt, prompts_hash
from paribus.wire import standard_tokens

SET = "own-v1"
CARD = Path(__file__).parents[2] / "tasks/speed/prompts/CARD.md"
_PART = re.compile(r"(?<=<!-- statistics -->\n).*?(?=<!-- end of statistics -->)", re.DOTALL)


def user_text(prompt: SetPrompt) -> str:
    return "\n".join(str(m["content"]) for m in prompt.messages or [] if m["role"] == "user")


def prompt_tokens(prompt: SetPrompt) -> int:
    """Standard tokens of all messages, without the template around them."""
    return sum(standard_tokens(str(m["content"])) for m in prompt.messages or [])


def statistics(prompts: Sequence[SetPrompt]) -> str:
    """What the card says in numbers: the hash, the table, checks and languages, in Markdown."""
    checks = Counter(p.check.kind for p in prompts if p.check)
    languages = Counter(p.language for p in prompts)
    told = [
        f"Hash of the set (12 hex digits over the canonical prompts, sorted by id): `{prompts_hash(prompts)}`.",
        statistics_table(prompts),
        f"{checks.total()} of {len(prompts)} prompts have a check: "
        + ", ".join(f"{n} `{kind}`" for kind, n in sorted(checks.items(), key=lambda item: (-item[1], item[0])))
        + ".",
        "Languages: " + ", ".join(f"`{name}` {n}" for name, n in sorted(languages.items())) + ".",
    ]
    return "\n\n".join(told) + "\n"


def card_with(card: str, told: str) -> str:
    """The card with these statistics in the place of its own."""
    return _PART.sub(lambda _: told, card)


def statistics_table(prompts: Sequence[SetPrompt]) -> str:
    """A Markdown table: prompts, checks and prompt-token percentiles of each kind and length."""
    head = "| kind | length | prompts | measured | tuning | checked | tokens min | p25 | p50 | p75 | max |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|---|"]
    for kind in KINDS:
        for length in ("short", "long"):
            chosen = [p for p in prompts if (p.kind, p.length) == (kind, length)]
            lines.append(f"| {kind} | {length} | {_cells(chosen)} |")
    lines.append(f"| all | | {_cells(prompts)} |")
    return "\n".join(lines)


def _cells(prompts: Iterable[SetPrompt]) -> str:
    chosen = list(prompts)
    tokens = [prompt_tokens(p) for p in chosen]
    points = [round(float(q)) for q in np.percentile(tokens, [0, 25, 50, 75, 100])]
    tuning = sum(p.split == "tuning" for p in chosen)
    checked = sum(p.check is not None for p in chosen)
    return " | ".join(str(n) for n in [len(chosen), len(chosen) - tuning, tuning, checked, *points])


if __name__ == "__main__":
    told = statistics(Catalog(CARD.parents[3]).prompt_set(SET))
    CARD.write_text(card_with(CARD.read_text(encoding="utf-8"), told), encoding="utf-8")
    print(told)
