"""Energy of CPU packages through RAPL (`/sys/class/powercap`), where the kernel lets us read it.

See <https://docs.kernel.org/power/powercap/powercap.html>.
"""

from __future__ import annotations

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


class Rapl:
    """Counters of all packages, unwrapped and added up, in joules since this object was made."""

    def __init__(self, folder: Path = POWERCAP) -> None:
        self._zones: list[tuple[Path, int]] = []
        for zone in sorted(folder.glob("intel-rapl:*")):
            # `intel-rapl:0:1` is a part of `intel-rapl:0`. Not every zone is a package: `psys` is the whole platform.
            if zone.name.count(":") == 1:
                try:
                    name = (zone / "name").read_text()
                    span = int((zone / "max_energy_range_uj").read_text())
                    int((zone / "energy_uj").read_text())
                except (OSError, ValueError):
                    continue
                if name.startswith("package"):
                    self._zones.append((zone / "energy_uj", span))
        self._last = [self._read(path) for path, _ in self._zones]
        self._total_uj = 0

    @staticmethod
    def _read(path: Path) -> int:
        return int(path.read_text())

    @property
    def readable(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._zones)

    def joules(self) -> float | None:
        """Joules so far, None where nothing can be read. Read it more often than the counters wrap (a minute or so)."""
        if not self._zones:
            return None
        try:
            now = [self._read(path) for path, _ in self._zones]
        except (OSError, ValueError):
            return None
        for before, after, (_, span) in zip(self._last, now, self._zones, strict=True):
            self._total_uj += after - before if after >= before else after - before + span
        self._last = now
        return self._total_uj / 1e6
