"""A window: the stretch of a load over which throughput is told."""

from __future__ import annotations

import itertools
from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """A stretch of the load, in nanoseconds since its start. The edges are clock times, never arrivals."""

    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.start_ns) / 1e9

    def split(self, parts: int) -> list[Window]:
        """Equal parts, in order."""
        import numpy as np  # a load needs windows, and no numpy

        edges = np.linspace(self.start_ns, self.end_ns, parts + 1).round().astype(int).tolist()
        return [Window(a, b) for a, b in itertools.pairwise(edges)]
