"""Tables from rows: the same as pyarrow's own, without pandas."""

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.machine.columns import table_of

ELEMENT = pa.field("element", pa.int64(), nullable=False)
SCHEMA = pa.schema(
    [
        pa.field("whole", pa.int64()),
        pa.field("small", pa.int32(), nullable=False),
        pa.field("real", pa.float64()),
        pa.field("flag", pa.bool_()),
        pa.field("text", pa.string()),
        pa.field("data", pa.binary(), nullable=False),
        pa.field("times", pa.list_(ELEMENT)),
    ],
    metadata={"a": "b"},
)
LONG = st.integers(-(2**63), 2**63 - 1)
ROWS = st.fixed_dictionaries(
    {
        "whole": st.none() | LONG,
        "small": st.integers(-(2**31), 2**31 - 1),
        "real": st.none() | st.floats(allow_nan=False),
        "flag": st.none() | st.booleans(),
        "text": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "data": st.binary(max_size=20),
        "times": st.none() | st.lists(LONG, max_size=9),
    }
)


@given(st.lists(ROWS, max_size=20))
def test_it_is_the_table_that_pyarrow_makes(rows):
    made = table_of(rows, SCHEMA)
    made.validate(full=True)
    assert made.equals(pa.Table.from_pylist(rows, schema=SCHEMA), check_metadata=True)
    assert made.to_pylist() == rows


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="small has no nulls"):
        table_of([{"whole": 1}], SCHEMA)
    with pytest.raises(TypeError, match="not known"):
        table_of([{"a": 1}], pa.schema([pa.field("a", pa.date32())]))


def test_measuring_does_not_import_pandas(tmp_path):
    script = (
        "import sys; from pathlib import Path; from paribus.machine import write_telemetry; "
        "from paribus.speed.rows import write_rows; from paribus.wire import write_outcomes; "
        "here = Path(sys.argv[1]); write_telemetry(here / 't', [{'t_ns': 1}], 0); write_rows(here / 'r', []); "
        "write_outcomes(here / 'o', []); print('pandas' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
