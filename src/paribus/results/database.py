"""Writing `build/paribus.duckdb` and the data files from rows, table by table, in a fixed order."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from paribus.machine.columns import table_of
from paribus.machine.files import disk_faults, write_atomic
from paribus.results.columns import Table
from paribus.results.tables import EXPORTS, TABLES

STORAGE = "v1.0.0"
"""Storage version of the file: readable by every DuckDB since 1.0."""

_TYPES: dict[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "JSON": pa.string(),
    "INTEGER": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
}

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def arrow(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as an Arrow table with the columns of `table`, sorted by its order. Unknown columns are an error."""
    rows = list(rows)
    known = set(table.names)
    for row in rows:
        if not known.issuperset(row):
            raise ValueError(f"the table {table.name} has no column {sorted(set(row) - known)[0]}")
    ordered = sorted(rows, key=lambda row: [_sortable(row.get(name.strip('"'))) for name in table.order])
    schema = pa.schema([(column.name, _TYPES[column.type]) for column in table.columns])
    cells = [{column.name: _cell(column.type, row.get(column.name)) for column in table.columns} for row in ordered]
    return table_of(cells, schema)


def _sortable(value: Any) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, (bool, int, float)):
        return (1, float(value), "")
    return (2, 0.0, str(value))


def _cell(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "JSON":
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if kind == "VARCHAR":
        # Text from strangers may hold lone surrogates, which no database can.
        return str(value).encode("utf-8", "replace").decode()
    if kind == "INTEGER" and value != int(value):
        raise ValueError(f"{value} is no whole number")
    if kind == "INTEGER" and not -(2**31) <= value < 2**31:
        raise ValueError(f"{value} is no number of 32 bits")
    return float(value) if kind == "DOUBLE" else value


def write_database(path: Path, rows: Rows) -> dict[str, pa.Table]:
    """Write the database under a temporary name, then rename it. Returns the tables as written."""
    tables = {name: arrow(table, rows.get(name, ())) for name, table in TABLES.items()}
    with disk_faults(path), tempfile.TemporaryDirectory(prefix=".paribus-", dir=_folder(path)) as folder:
        temporary = Path(folder) / path.name
        connection = duckdb.connect()
        try:
            connection.execute(
                f"ATTACH '{str(temporary).replace(chr(39), chr(39) * 2)}' AS out (STORAGE_VERSION '{STORAGE}')"
            )
            connection.execute("USE out")
            for name, content in tables.items():
                connection.execute(TABLES[name].ddl)
                connection.register("incoming", content)
                names = ", ".join(f'"{column}"' for column in TABLES[name].names)
                connection.execute(f'INSERT INTO "{name}" ({names}) SELECT {names} FROM incoming')  # noqa: S608 (our own names)
                connection.unregister("incoming")
            connection.execute("CHECKPOINT out")
            connection.execute("USE memory")
            connection.execute("DETACH out")
        finally:
            connection.close()
        temporary.replace(path)
    return tables


def _folder(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.parent


def write_exports(folder: Path, tables: Mapping[str, pa.Table]) -> list[Path]:
    """Parquet and CSV of the tables that are published, a licence and a list of the columns. Same rows, same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in EXPORTS:
        parquet, csv = folder / f"{name}.parquet", folder / f"{name}.csv"
        with disk_faults(parquet):
            _parquet(parquet, tables[name])
            _csv(csv, tables[name])
        written += [parquet, csv]
    write_atomic(folder / "LICENCE.txt", LICENCE.encode())
    write_atomic(folder / "README.md", readme().encode())
    return [*written, folder / "LICENCE.txt", folder / "README.md"]


def _parquet(path: Path, table: pa.Table) -> None:
    partial = path.with_name(f".{path.name}.part")
    pq.write_table(table, partial, compression="zstd", compression_level=9)
    partial.replace(path)


def _csv(path: Path, table: pa.Table) -> None:
    partial = path.with_name(f".{path.name}.part")
    connection = duckdb.connect()
    try:
        connection.register("incoming", table)
        target = str(partial).replace("'", "''")
        connection.execute(f"COPY incoming TO '{target}' (FORMAT csv, HEADER true)")
    finally:
        connection.close()
    partial.replace(path)


LICENCE = """Paribus results: Creative Commons Attribution 4.0 International (CC-BY-4.0)
https://creativecommons.org/licenses/by/4.0/

Use them for anything, and name the source: "Paribus results", with the id of the figure or run and its date.
`paribus cite FIGURE` writes the sentence. The texts of prompts and answers of public benchmarks keep their own licences
and are not in these files.
"""


def readme() -> str:
    """What the data files hold, column by column, and how each loads with one line."""
    parts = [
        "# Paribus: the data files\n",
        "Each file is one table, as Parquet and as CSV. One line loads it:\n",
        "```python",
        "import duckdb; runs = duckdb.sql(\"SELECT * FROM 'runs.parquet'\").df()",
        "import pandas; runs = pandas.read_csv('runs.csv')",
        "```\n",
        "Licence: CC-BY-4.0, see `LICENCE.txt`. Milliseconds, tokens a second, shares of 1; times are UTC.\n",
    ]
    for name in EXPORTS:
        table = TABLES[name]
        parts += [f"## {name}\n", f"{table.doc}\n", "| column | type | meaning |", "|---|---|---|"]
        parts += [f"| `{column.name}` | {column.type} | {column.doc} |" for column in table.columns]
        parts.append("")
    return "\n".join(parts)
