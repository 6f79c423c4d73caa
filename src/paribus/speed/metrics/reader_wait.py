"""How long a reader waits for text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paribus.speed.metrics.registry import metric
from paribus.speed.rows import READERS, Row
from paribus.speed.statistics import mean


def wait_s(at_ns: npt.NDArray[np.int64], standard: npt.NDArray[np.int64], speed: float) -> float | None:
    """Seconds that a reader of `speed` standard tokens a second stands still after the first text has come.

    The reader starts with the first piece, reads what is there at that speed, and waits when it has read it all.
    """
    if not len(at_ns):
        return None
    free, waited = float(at_ns[0]) / 1e9, 0.0
    reading = np.diff(standard, prepend=0) / speed
    for arrives, takes in zip((at_ns / 1e9).tolist(), reading.tolist(), strict=True):
        if arrives > free:
            waited += arrives - free
            free = arrives
        free += takes
    return waited


@metric("reader_wait", title="Time a reader waits", unit="s", better="lower", across="yes")
def reader_wait(rows: Sequence[Row]) -> dict[str, float | None]:
    """Seconds that a reader at 8 and at 30 standard tokens a second stands still after the first text.

    The reader starts with the first piece, reads what is there, and waits whenever it has read everything; the wait
    before the first text is `ttft`. Mean over the answered requests.
    """
    return {
        str(speed): mean([w for row in rows if row.ok and (w := row.reader_wait(speed)) is not None])
        for speed in READERS
    }
