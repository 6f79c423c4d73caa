"""What a table of the database is made of: columns with a type and a meaning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column: its DuckDB type and what it means."""

    name: str
    type: str
    doc: str


@dataclass(frozen=True)
class Table:
    """One table: what a row is, its columns, and the columns whose order the rows stand in."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]

    @property
    def ddl(self) -> str:
        """The `CREATE TABLE` statement."""
        body = ", ".join(f'"{column.name}" {column.type}' for column in self.columns)
        return f'CREATE TABLE "{self.name}" ({body})'

    @property
    def names(self) -> list[str]:
        """The columns' names, in order."""
        return [column.name for column in self.columns]


def table(name: str, doc: str, order: str, *columns: tuple[str, str, str]) -> Table:
    """A table: `order` names columns separated by blanks; `columns` are (name, type, meaning)."""
    return Table(name, doc, tuple(Column(*column) for column in columns), tuple(order.split()))
