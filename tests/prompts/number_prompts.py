"""Numbers a prompt set anew: run it after a text has changed, before the set is published.

Within a kind and a length, prompts are sorted by their standard tokens, so that small scales, which take the first of
each kind, stay cheap; ids follow from the order, and the split from the ids' hashes. Recorded answers are renamed with
their prompts, and the schemas of the tools that a prompt offers are copied into its check.
`python tests/prompts/number_prompts.py` rewrites the files in place and prints what moved.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from paribus.catalog import KINDS
from paribus.wire import standard_tokens

ROOT = Path(__file__).parents[2]
SET = ROOT / "tasks/speed/prompts/own-v1.jsonl"
ANSWERS = Path(__file__).parent / "answers"
TUNING = 8
"""Of each kind and length, the prompts with the lowest hashes that are for tuning."""
KEYS = ("id", "kind", "length", "split", "language", "messages", "check")


def tuning_ids(ids: list[str]) -> set[str]:
    """The ids of one kind and length that are for tuning: those with the lowest sha256."""
    return set(sorted(ids, key=lambda id: hashlib.sha256(id.encode()).hexdigest())[:TUNING])


def numbered(lines: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The prompts in the set's order with ids and splits, and the new id of each old one."""
    done: list[dict[str, Any]] = []
    renamed: dict[str, str] = {}
    for kind in KINDS:
        for length in ("short", "long"):
            group = [line for line in lines if (line["kind"], line["length"]) == (kind, length)]
            group.sort(key=lambda line: (tokens_of(line), json.dumps(line["messages"])))
            ids = [f"{kind}-{length}-{n:02d}" for n in range(1, len(group) + 1)]
            tuning = tuning_ids(ids)
            for id, line in zip(ids, group, strict=True):
                renamed[line["id"]] = id
                whole = {**with_schemas(line), "id": id, "split": "tuning" if id in tuning else "measured"}
                done.append({key: whole[key] for key in KEYS if key in whole})
    return done, renamed


def offered_tools(text: str) -> dict[str, Any]:
    """The JSON Schemas of the tools' arguments by the tools' names, from a system message with one tool a line."""
    tools = [json.loads(line) for line in text.split("\n") if line.startswith('{"name": "')]
    return {tool["name"]: tool["parameters"] for tool in tools}


def with_schemas(line: dict[str, Any]) -> dict[str, Any]:
    """The prompt with the schemas of the tools that its check expects calls of."""
    check = line.get("check")
    if not check or check["kind"] != "tool_call" or not check["parameters"]["calls"]:
        return line
    offered, called = offered_tools(line["messages"][0]["content"]), {}
    for call in check["parameters"]["calls"]:
        called[call["name"]] = offered[call["name"]]
    return {**line, "check": {**check, "parameters": {**check["parameters"], "schemas": called}}}


def tokens_of(line: dict[str, Any]) -> int:
    """Standard tokens of all messages."""
    return sum(standard_tokens(message["content"]) for message in line["messages"])


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    """JSON lines, text as it is written."""
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def main() -> None:
    done, renamed = numbered(read_lines(SET))
    write_lines(SET, done)
    for path in sorted(ANSWERS.glob("*.jsonl")):
        told = [{**line, "id": renamed[line["id"]]} for line in read_lines(path) if line["id"] in renamed]
        write_lines(path, sorted(told, key=lambda line: line["id"]))
    moved = {old: new for old, new in renamed.items() if old != new}
    print(f"{len(done)} prompts, {len(moved)} with a new id: {moved}")


if __name__ == "__main__":
    main()
