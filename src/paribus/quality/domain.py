"""A dialogue's domain as data: a policy, a database of tables, and tools declared by what they do to it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Row = dict[str, Any]
Database = dict[str, dict[str, Row]]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Requirement(_Part):
    """A field that must have a value before a row is changed, and the error otherwise."""

    field: str
    equals: Any
    error: str


class RowNeeded(_Part):
    """A row that must exist: a table, and the argument that holds its key."""

    table: str
    key: str


class Effect(_Part):
    """What a tool does. Values: a constant, `$argument`, or `@field` of the row before the change."""

    op: Literal["get", "list", "update", "insert", "delete"]
    table: str
    key: str = ""
    where: dict[str, str] = {}
    requires: list[Requirement] = []
    requires_rows: list[RowNeeded] = []
    set: dict[str, Any] = {}
    prefix: str = ""
    row: dict[str, Any] = {}


class Tool(_Part):
    """One tool: a name, a description, a JSON Schema of its arguments, an effect."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Effect

    def shown(self) -> dict[str, Any]:
        """What the model is shown."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}

    def fault(self, arguments: Any) -> str | None:
        """Why arguments don't fit the schema, or null when they do. Knows what our schemas use."""
        if not isinstance(arguments, dict):
            return "the arguments must be a JSON object"
        known: dict[str, Any] = self.parameters.get("properties", {})
        absent = [name for name in self.parameters.get("required", []) if name not in arguments]
        if absent:
            return f"the argument {absent[0]!r} is missing"
        extra = [name for name in arguments if name not in known]
        if extra:
            return f"there is no argument {str(extra[0])[:40]!r}"
        types: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
        for name, value in arguments.items():
            wanted = types.get(str(known[name].get("type")), object)
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted in (int, (int, float))):
                return f"the argument {name!r} must be of type {known[name]['type']}"
        return None


class Domain(_Part):
    """Policy, tools and database of a domain."""

    domain: str
    policy: str
    tools: list[Tool] = Field(min_length=1)
    database: Database

    def call(self, database: Database, name: str, arguments: Any) -> tuple[Any, bool]:
        """Call a tool on a database (changed in place): its result, and whether the call made sense."""
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            return {"error": f"there is no tool {str(name)[:40]!r}"}, False
        fault = tool.fault(arguments)
        if fault is not None:
            return {"error": fault}, False
        return _apply(tool.effect, database.setdefault(tool.effect.table, {}), database, arguments), True


def _apply(effect: Effect, table: dict[str, Row], database: Database, arguments: Row) -> Any:
    for needed in effect.requires_rows:
        key = str(arguments.get(needed.key))
        if key not in database.get(needed.table, {}):
            return {"error": f"there is no {key[:40]} in {needed.table}"}
    if effect.op == "list":
        return [row for row in table.values() if all(row.get(f) == arguments.get(a) for f, a in effect.where.items())]
    if effect.op == "insert":
        key = _new_key(effect.prefix, table)
        table[key] = {"id": key, **{name: _value(v, arguments, {}) for name, v in effect.row.items()}}
        return table[key]
    key = str(arguments.get(effect.key))
    if key not in table:
        return {"error": f"there is no {key[:40]} in {effect.table}"}
    row = table[key]
    for rule in effect.requires:
        if row.get(rule.field) != rule.equals:
            return {"error": rule.error}
    if effect.op == "delete":
        del table[key]
        return {"deleted": key}
    if effect.op == "update":
        table[key] = row = {**row, **{name: _value(v, arguments, row) for name, v in effect.set.items()}}
    return row


def _new_key(prefix: str, table: dict[str, Row]) -> str:
    number = len(table) + 1
    while f"{prefix}{number}" in table:
        number += 1
    return f"{prefix}{number}"


def _value(value: Any, arguments: Row, row: Row) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        return arguments.get(value[1:])
    if isinstance(value, str) and value.startswith("@"):
        return row.get(value[1:])
    return value
