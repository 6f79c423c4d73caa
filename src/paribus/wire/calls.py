"""Tool calls, put together from their parts.

A part belongs to the call with its index, or to the last one where it has none. Servers give parallel calls one index
(ollama/ollama#15457, InternLM/lmdeploy#3412 of vLLM, ai-dynamo/dynamo#4723) or none (ollama/ollama#7881): another id
begins another call, and without ids another name does, once arguments have come. But some give the parts of one call an
id each (poolsideai/pool#9): arguments without a name go on with the call of their index.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from paribus.wire.delta import dicts, flat


@dataclass
class Call:
    """One call. `place`: its index, or its number where it has none."""

    place: int
    name: str = ""
    arguments: str = ""
    id: str = ""


@dataclass
class Calls:
    """The calls of an answer while it is read."""

    made: list[Call] = field(default_factory=list)
    found: dict[tuple[int | None, str], Call] = field(default_factory=dict)
    """By index and id, and the last by each of the two alone: None for any index, "" for any id."""

    def take(self, given: Any, *, whole: bool) -> str:
        """Add parts of calls and return their text. `whole`: of a message that may repeat what was streamed."""
        parts = list(dicts(given))
        before, known = len(self.made), set(self.found) if whole else set()
        added = []
        for position, part in enumerate(parts):
            index, id = part.get("index"), flat(part.get("id"))
            index = index if isinstance(index, int) else None
            place = position if index is None else max(position, index)
            told = (None, id) in known if id else (index, "") in known
            if whole and (told or place < before):
                continue
            if index is None and len(parts) > 1:
                index = position
            function = part.get("function")
            function = function if isinstance(function, dict) else {}
            name, arguments = flat(function.get("name")), _arguments(function.get("arguments"))
            into = self._call(index, id, name, arguments)
            if name != into.name or not into.arguments:  # some servers name the function with each part
                into.name += name
            into.arguments += arguments
            into.id = into.id or id
            self.found |= {(index, ""): into, (None, ""): into, (index, id): into, (None, id): into}
            added.append(name + arguments)
        return "".join(added)

    def _call(self, index: int | None, id: str, name: str, arguments: str) -> Call:
        """The call that a part belongs to."""
        if id and (index, id) in self.found:
            return self.found[index, id]
        last = self.found.get((index, ""))
        if last is not None:
            goes_on = index is not None and arguments and not name
            another_id = id and last.id and id != last.id and not goes_on
            another_name = not id and name and last.arguments and name != last.name
            if not another_id and not another_name:
                return last
        self.made.append(Call(len(self.made) if index is None else index))
        return self.made[-1]

    def told(self) -> list[dict[str, str]]:
        """The calls in order: name, arguments, id of each."""
        in_order = sorted(self.made, key=lambda call: call.place)
        return [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in in_order]


def _arguments(value: Any) -> str:
    """Arguments as text; servers that send an object instead of a string are taken at their JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else flat(value)
