"""The statistics of our own prompts that their card prints. Run it to see the table and the hash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from paribus.catalog import KINDS, Catalog, SetPrompt, prompts_hash
from paribus.wire import standard_tokens


def user_text(prompt: SetPrompt) -> str:
    return "\n".join(str(m["content"]) for m in prompt.messages or [] if m["role"] == "user")


def prompt_tokens(prompt: SetPrompt) -> int:
    """Standard tokens of all messages, without the template around them."""
    return sum(standard_tokens(str(m["content"])) for m in prompt.messages or [])


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
    everything = Catalog(Path(__file__).parents[2]).prompt_set("own-v0")
    print(statistics_table(everything))
    print(prompts_hash(everything))
