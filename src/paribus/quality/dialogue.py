"""The stand-in of Tau2: a small domain with tools on a JSON database, and a user who follows a script.

Everything is data: tools are declared by their effect on the database, users by what they say when. A model talks
until the user is satisfied or gives up; the reward is 1 when the database ends as the task wants it and everything
that had to be said was said.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paribus.catalog import QualityTask
from paribus.conditions import UsageError, inside
from paribus.quality.asking import Answerer, Question
from paribus.quality.data import Item, item_id
from paribus.quality.domain import Database, Domain
from paribus.quality.journal import Entry, Key
from paribus.quality.tasks.base import visible

VERSION = "2"
"""Changes whenever a reward could."""

_PATIENCE = 2
"""How often a user says their stock phrase before leaving."""

HOW_TO_CALL = (
    "\n\nYou have these tools:\n{tools}\n\nTo use a tool, answer with nothing but a JSON object in this form, and wait "
    'for its result:\n{{"name": "<tool>", "arguments": {{"<argument>": "<value>"}}}}\n'
    "To talk to the user, answer in plain words."
)
"""How tools are explained to a model in words (`tools`: one JSON object a line)."""


@dataclass
class ToolUse:
    """Tool calls of one dialogue: how many there were, and how many made no sense."""

    calls: int = 0
    malformed: int = 0


@dataclass(frozen=True)
class Dialogue:
    """One dialogue. `reward` 0 or 1; `failed` when a request in it failed. A failed or a capped one gets 0.

    `users`: it failed through the user simulator, and not through the system under test.
    """

    reward: float
    turns: int
    tools: ToolUse
    entries: tuple[Entry, ...]
    failed: bool
    why: str
    users: bool = False


@dataclass
class User:
    """A user with a script: an opening, replies that wait for words of the model, a stock phrase."""

    scenario: Mapping[str, Any]
    used: set[int] = field(default_factory=set)
    stock: int = 0

    def opening(self) -> str:
        """What the user says first."""
        return str(self.scenario["opening"])

    def reply(self, message: str) -> tuple[str | None, bool]:
        """What the user answers (null: nothing, they left), and whether they leave after it."""
        replies = self.scenario.get("replies", [])
        heard = message.casefold()
        for number, reply in enumerate(replies):
            words = reply.get("if_any", [])
            if number not in self.used and (not words or any(str(word).casefold() in heard for word in words)):
                self.used.add(number)
                return str(reply["say"]), bool(reply.get("ends", False))
        if len(self.used) == len(replies) or self.stock >= _PATIENCE:
            return None, True
        self.stock += 1
        return str(self.scenario.get("otherwise", "")), False


def load_domain(task: QualityTask, root: Path) -> Domain:
    """The domain of a dialogue task: policy, tools, database."""
    name = task.settings.get("domain_file")
    if name is None:
        raise UsageError(f"{task.task}: its file names no domain_file")
    path = inside(root / "tasks" / "quality", str(name))
    try:
        return Domain.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read the domain {path}: {' '.join(str(error).split())[:200]}") from error


async def play(item: Item, repeat: int, task: QualityTask, domain: Domain, answerer: Answerer) -> Dialogue:
    """Play one dialogue to its end. The answers decide everything: the same answers give the same dialogue."""
    database = start_of(item, domain)
    user, tools = User(item["user_scenario"]), ToolUse()
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": system_message(domain)},
        {"role": "user", "content": user.opening()},
    ]
    entries: list[Entry] = []
    said: list[str] = []
    for turn in range(int(task.settings.get("max_steps", 8))):
        key = Key(task.task, item_id(task, item), repeat, turn)
        entry = await answerer.answer(Question(key, tuple(messages)))
        entries.append(entry)
        if entry.error:
            return Dialogue(0.0, turn + 1, tools, tuple(entries), True, f"turn {turn}: {entry.error}")
        if entry.capped:  # unfinished counts as wrong, whatever the database looks like by now
            return Dialogue(0.0, turn + 1, tools, tuple(entries), False, f"turn {turn}: the token cap cut the answer")
        text = visible(entry.text)
        messages.append({"role": "assistant", "content": text})
        results = list(_use_tools(entry, text, domain, database, tools))
        if results:
            messages.append({"role": "user", "content": "\n".join(results)})
            continue
        said.append(text)
        answer, leaves = user.reply(text)
        if answer is None or leaves:
            break
        messages.append({"role": "user", "content": answer})
    why = shortcoming(item, domain, database, said)
    return Dialogue(float(why is None), len(entries), tools, tuple(entries), False, why or "as it should be")


def system_message(domain: Domain) -> str:
    """The policy, the tools as JSON Schema, and the form of a tool call."""
    lines = [json.dumps(tool.shown(), ensure_ascii=False) for tool in domain.tools]
    return domain.policy + HOW_TO_CALL.format(tools="\n".join(lines))


def start_of(item: Item, domain: Domain) -> Database:
    """The domain's database with the item's own rows laid over it."""
    database = copy.deepcopy(domain.database)
    for table, rows in (item.get("initial_state") or {}).items():
        for key, row in rows.items():
            place = database.setdefault(table, {})
            place[key] = {**place.get(key, {}), **row}
    return database


def shortcoming(item: Item, domain: Domain, database: Database, said: list[str]) -> str | None:
    """Why a dialogue falls short of its task, or null when it doesn't."""
    criteria = item["evaluation_criteria"]
    wanted = start_of(item, domain)
    for action in criteria.get("actions", []):
        domain.call(wanted, action["name"], action["arguments"])
    if database != wanted:
        return "the database is not as it should be"
    heard = _squeezed(" ".join(said))
    unsaid = next((words for words in criteria.get("communicate_info", []) if _squeezed(words) not in heard), None)
    return None if unsaid is None else f"{unsaid!r} was not said"


def _squeezed(text: str) -> str:
    return " ".join(text.casefold().split())


def _use_tools(entry: Entry, text: str, domain: Domain, database: Database, use: ToolUse) -> Iterator[str]:
    """Results of the tool calls of one answer, in words for the model; malformed calls get an error as result."""
    for name, arguments in [*_native(entry), *(written_calls(text) if not entry.tool_calls else [])]:
        use.calls += 1
        result, sound = domain.call(database, name, arguments)
        use.malformed += not sound
        yield f"Result of {name or 'the call'}: {json.dumps(result, ensure_ascii=False)}"


def _native(entry: Entry) -> Iterator[tuple[str, Any]]:
    """Tool calls that the engine reported as such; arguments that are no JSON stay text."""
    for call in entry.tool_calls:
        try:
            yield call.get("name", ""), json.loads(call.get("arguments", ""))
        except json.JSONDecodeError:
            yield call.get("name", ""), call.get("arguments", "")


_FENCED = re.compile(r"^```(?:json|tool_call)?\s*\n(.*?)\n?```$", re.DOTALL)
_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)


def written_calls(text: str) -> list[tuple[str, Any]]:
    """Tool calls written as text: a JSON object alone (or fenced), or inside `<tool_call>` tags."""
    body = text.strip()
    tagged = [match.strip() for match in _TAGGED.findall(body)]
    if fenced := _FENCED.match(body):
        body = fenced.group(1).strip()
    if not tagged and not (body.startswith("{") and '"name"' in body):
        return []
    return [_call(part) for part in tagged or [body]]


def _call(text: str) -> tuple[str, Any]:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (json.JSONDecodeError, RecursionError):
        return "", text
    if not isinstance(value, dict):
        return "", text
    return str(value.get("name", "")), value.get("arguments", {})


class NullAgent:
    """An agent that does and says nothing: what it gets is the floor under every score."""

    async def answer(self, question: Question) -> Entry:
        """An empty answer."""
        from paribus.quality.asking import missing

        return missing(question.key).model_copy(update={"error": None, "status": 200, "finish_reason": "stop"})
