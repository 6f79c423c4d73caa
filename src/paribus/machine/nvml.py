"""NVIDIA cards through NVML (`pynvml`): facts and samples. Never serial numbers; a card is named by what it is.

Every reading is optional: a driver that doesn't support one leaves it out. See
<https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html>.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, TypeVar

T = TypeVar("T")

# Reason bits that mean "nothing to do" or "as set": idle, applications' clocks, display clocks.
IDLE_REASONS = 0x1 | 0x2 | 0x100
POWER_CAP = 0x4
# Hardware slowdown, sync boost, software thermal, hardware thermal, hardware power brake.
REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "hardware power brake",
}
FAULTS = 0x8 | 0x20 | 0x40 | 0x80
"""Reasons that slow a card down whenever they are set: heat and the hardware. A power cap may be set for nothing."""
_FIELD_POWER_INSTANT = 186
VIRTUALIZATION = {1: "passed through whole", 2: "a virtual card", 3: "shared out as virtual cards", 4: "shared out"}
"""NVML's modes; none is told for a card that isn't virtualized."""


class Nvml:
    """NVML, opened once; `devices` are the cards that this job may use (`CUDA_VISIBLE_DEVICES`)."""

    def __init__(self, library: Any) -> None:
        self._nvml = library
        library.nvmlInit()
        count = int(library.nvmlDeviceGetCount())
        # A card that fell off the bus is counted and can't be opened.
        found = [self._ask(lambda i=index: library.nvmlDeviceGetHandleByIndex(i)) for index in range(count)]  # type: ignore[misc]
        uuids = [self._uuid(handle) if handle is not None else "" for handle in found]
        slices = self._slices(found)
        uuids += [uuid for uuid, _, _ in slices]
        cards: list[tuple[Any, Any]] = [(handle, None) for handle in found] + [(card, part) for _, card, part in slices]
        self._cards = [cards[i] for i in visible_devices(count, uuids) if cards[i][0] is not None]
        self.devices = [card for card, _ in self._cards]

    def _slices(self, cards: list[Any]) -> list[tuple[str, Any, Any]]:
        """(id, card, slice) of every MIG slice: `CUDA_VISIBLE_DEVICES` names them by their ids."""
        n, found = self._nvml, []
        for card in (c for c in cards if c is not None and self._mig(c)):
            for index in range(self._ask(lambda c=card: n.nvmlDeviceGetMaxMigDeviceCount(c)) or 0):  # type: ignore[misc]
                part = self._ask(lambda c=card, i=index: n.nvmlDeviceGetMigDeviceHandleByIndex(c, i))  # type: ignore[misc]
                if part is not None:
                    found.append((self._uuid(part), card, part))
        return found

    def _mig(self, handle: Any) -> bool:
        return bool(self._ask(lambda: self._nvml.nvmlDeviceGetMigMode(handle)[0]))

    def _uuid(self, handle: Any) -> str:
        return _text(self._ask(lambda: self._nvml.nvmlDeviceGetUUID(handle)) or "")

    def _ask(self, call: Callable[[], T]) -> T | None:
        try:
            return call()
        except (self._nvml.NVMLError, AttributeError):
            return None

    def facts(self) -> dict[str, Any]:
        """Observed conditions of the cards: their names and number, and all else of the first one."""
        cards = [self._card(handle, part) for handle, part in self._cards]
        names = sorted({card.get("card", "unknown") for card in cards})
        first = cards[0] if cards else {}
        driver = self._ask(self._nvml.nvmlSystemGetDriverVersion)
        return {
            **first,
            "card": " + ".join(names),
            "card_count": len(cards),
            "driver": _text(driver) if driver is not None else None,
        }

    def _card(self, handle: Any, part: Any) -> dict[str, Any]:
        """A card, or of a MIG slice its own name and memory, and the rest of the card that it is a part of."""
        n = self._nvml
        seen = handle if part is None else part
        memory = self._ask(lambda: n.nvmlDeviceGetMemoryInfo(seen).total)
        limit = self._ask(lambda: n.nvmlDeviceGetPowerManagementLimit(handle))
        default = self._ask(lambda: n.nvmlDeviceGetPowerManagementDefaultLimit(handle))
        pci = self._ask(lambda: n.nvmlDeviceGetPciInfo(handle).pciDeviceId)
        ecc = self._ask(lambda: n.nvmlDeviceGetEccMode(handle)[0])
        mig = self._ask(lambda: n.nvmlDeviceGetMigMode(handle)[0])
        virtual = self._ask(lambda: n.nvmlDeviceGetVirtualizationMode(handle))
        persistence = self._ask(lambda: n.nvmlDeviceGetPersistenceMode(handle))
        capability = self._ask(lambda: n.nvmlDeviceGetCudaComputeCapability(handle))
        name = self._ask(lambda: n.nvmlDeviceGetName(seen))
        found: dict[str, Any] = {
            "card": _text(name) if name is not None else "unknown",
            "card_memory_gb": round(memory / 1e9, 1) if memory is not None else None,
            "power_limit_w": limit / 1000 if limit is not None else None,
            "power_default_w": default / 1000 if default is not None else None,
            "clock_state": self._clock_state(handle),
            "pci_device_id": f"{pci >> 16:04x}:{pci & 0xFFFF:04x}" if pci is not None else None,
            "pcie": self._pcie(handle),
            "ecc": bool(ecc) if ecc is not None else None,
            "mig": bool(mig) if mig is not None else None,
            "virtualization": VIRTUALIZATION.get(virtual) if virtual is not None else None,
            "persistence": bool(persistence) if persistence is not None else None,
            "compute_capability": f"{capability[0]}.{capability[1]}" if capability is not None else None,
            # CUDA cores, 64 or 128 an SM: NVML doesn't tell the number of SMs itself.
            "cuda_cores": self._ask(lambda: n.nvmlDeviceGetNumGpuCores(handle)),
            "temperature_c": self._ask(lambda: n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU)),
        }
        return {key: value for key, value in found.items() if value is not None}

    def _pcie(self, handle: Any) -> str | None:
        n = self._nvml
        generation = self._ask(lambda: n.nvmlDeviceGetMaxPcieLinkGeneration(handle))
        width = self._ask(lambda: n.nvmlDeviceGetCurrPcieLinkWidth(handle))
        most = self._ask(lambda: n.nvmlDeviceGetMaxPcieLinkWidth(handle))
        if generation is None or width is None:
            return None
        # The present generation falls while a card rests; the most that card and slot can is what counts.
        return f"generation {generation}, {width} {f'of {most} ' if most is not None and most > width else ''}lanes"

    def _clock_state(self, handle: Any) -> str | None:
        """`default`, or what is set by hand: applications' clocks, offsets. None where nothing of it can be read."""
        n = self._nvml
        now = self._ask(lambda: n.nvmlDeviceGetApplicationsClock(handle, n.NVML_CLOCK_SM))
        default = self._ask(lambda: n.nvmlDeviceGetDefaultApplicationsClock(handle, n.NVML_CLOCK_SM))
        offsets = {
            "graphics": self._ask(lambda: n.nvmlDeviceGetGpcClkVfOffset(handle)),
            "memory": self._ask(lambda: n.nvmlDeviceGetMemClkVfOffset(handle)),
        }
        known = now is not None and default is not None
        if not known and set(offsets.values()) == {None}:
            return None
        said = [f"applications clock {now} MHz (default {default} MHz)"] if known and now != default else []
        said += [f"{name} clock offset {offset:+d} MHz" for name, offset in offsets.items() if offset]
        return ", ".join(said) or "default"

    def users(self) -> tuple[int, int]:
        """Processes on the cards that aren't this one: those that compute, and those that draw (a desktop).

        Only how many: whose they are is nobody's business. A driver that doesn't tell counts as none.
        """
        computing, drawing = set(), set()
        for card, handle in enumerate(self.devices):
            ask = self._nvml.nvmlDeviceGetComputeRunningProcesses
            found = {(card, p.pid) for p in self._ask(lambda h=handle, a=ask: a(h)) or []}  # type: ignore[misc]
            ask = self._nvml.nvmlDeviceGetGraphicsRunningProcesses
            drawn = {(card, p.pid) for p in self._ask(lambda h=handle, a=ask: a(h)) or []}  # type: ignore[misc]
            # A desktop's programs count as both.
            computing |= {one for one in found - drawn if one[1] != os.getpid()}
            drawing |= drawn
        return len(computing), len(drawing)

    def sample(self) -> dict[str, float]:
        """One reading over all cards: energy, power and memory added up, lowest clocks, hottest card, all reason bits.

        Energy and power of a card in MIG mode are the whole board's, other slices included: they are left out.
        """
        n = self._nvml
        whole = [handle for handle in self.devices if not self._mig(handle)]
        shared = len(whole) < len(self.devices)
        clock = self._each(lambda h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM))
        memory_clock = self._each(lambda h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM))
        temperature = self._each(lambda h: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU))
        reasons = [int(bits) for bits in self._each(n.nvmlDeviceGetCurrentClocksThrottleReasons) if bits is not None]
        utilisation = self._each(lambda h: n.nvmlDeviceGetUtilizationRates(h).gpu)
        averages = self._each(n.nvmlDeviceGetPowerUsage)
        values = {
            "energy_j": None if shared else _sum(self._each(n.nvmlDeviceGetTotalEnergyConsumption), 1e-3),
            "power_w": None if shared else _sum([self._power(handle) for handle in self.devices], 1e-3),
            "power_average_w": None if shared else _sum(averages, 1e-3),
            "power_limit_w": _sum(self._each(n.nvmlDeviceGetPowerManagementLimit), 1e-3),
            "clock_mhz": min((float(c) for c in clock if c is not None), default=None),
            "memory_clock_mhz": min((float(c) for c in memory_clock if c is not None), default=None),
            "memory_used_gb": _sum(self._each(lambda h: n.nvmlDeviceGetMemoryInfo(h).used), 1e-9),
            "utilisation": max((u / 100 for u in utilisation if u is not None), default=None),
            "temperature_c": max((float(t) for t in temperature if t is not None), default=None),
            "throttle_bits": float(reduce(or_, reasons)) if reasons else None,
        }
        return {key: value for key, value in values.items() if value is not None}

    def _each(self, call: Callable[[Any], T]) -> list[T | None]:
        """A reading of every card, None where one doesn't tell."""
        return [self._ask(lambda h=handle: call(h)) for handle in self.devices]  # type: ignore[misc]

    def _power(self, handle: Any) -> float | None:
        """Instantaneous power in mW: since GA100 the plain reading is an average over a second."""
        fields = self._ask(lambda: self._nvml.nvmlDeviceGetFieldValues(handle, [_FIELD_POWER_INSTANT]))
        if fields and fields[0].nvmlReturn == 0:
            return float(fields[0].value.uiVal)
        power = self._ask(lambda: self._nvml.nvmlDeviceGetPowerUsage(handle))
        return float(power) if power is not None else None

    def lock_names(self) -> list[str]:
        """Names of the cards' locks: a hash of each card's id, which itself is told to nobody."""
        names = (f"gpu-{hashlib.sha256(self._uuid(handle).encode()).hexdigest()[:8]}" for handle in self.devices)
        return list(dict.fromkeys(names))  # two slices of one card share its lock


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _sum(values: list[Any], factor: float) -> float | None:
    """The sum when every card told its value; a part of the cards is no sum."""
    return sum(values) * factor if values and None not in values else None


def visible_devices(count: int, uuids: list[str], variable: str | None = None) -> list[int]:
    """Indexes of the cards that `CUDA_VISIBLE_DEVICES` leaves (all when unset; it ends at the first unknown one)."""
    setting = os.environ.get("CUDA_VISIBLE_DEVICES") if variable is None else variable
    if setting is None:
        return list(range(count))
    chosen: list[int] = []
    for part in (text.strip() for text in setting.split(",")):
        if part.isdecimal() and int(part) < count:
            chosen.append(int(part))
        elif matching := [i for i, uuid in enumerate(uuids) if part and uuid.startswith(part)]:
            chosen.append(matching[0])
        else:
            break
    return chosen


def open_nvml() -> Nvml | None:
    """NVML with at least one visible card, or None where there is none."""
    try:
        import pynvml

        nvml = Nvml(pynvml)
    except Exception:
        # No library, no driver, or a driver that is broken in its own way: then there is no card to speak of.
        return None
    return nvml if nvml.devices else None
