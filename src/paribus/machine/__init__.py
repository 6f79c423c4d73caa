"""The machine: its facts and label, locks, process trees, telemetry, and files that are whole or not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.lazily import lazily

if TYPE_CHECKING:
    from paribus.machine.energy import Energy
    from paribus.machine.facts import memory_gb, observe_machine
    from paribus.machine.files import disk_faults, write_atomic, write_json
    from paribus.machine.holding import Hold
    from paribus.machine.label import machine_label
    from paribus.machine.load import Load, load_of, read_telemetry, write_telemetry
    from paribus.machine.locks import Lock, card_lock
    from paribus.machine.parent import Stopped, watch_parent, workflow_mark
    from paribus.machine.ports import choose_port, free_port, port_in_use
    from paribus.machine.processes import ProcessTree, clean_environment
    from paribus.machine.scrubbing import Owner, scrub, scrub_value
    from paribus.machine.telemetry import Telemetry

__all__ = [
    "Energy",
    "Hold",
    "Load",
    "Lock",
    "Owner",
    "ProcessTree",
    "Stopped",
    "Telemetry",
    "card_lock",
    "choose_port",
    "clean_environment",
    "disk_faults",
    "free_port",
    "load_of",
    "machine_label",
    "memory_gb",
    "observe_machine",
    "port_in_use",
    "read_telemetry",
    "scrub",
    "scrub_value",
    "watch_parent",
    "workflow_mark",
    "write_atomic",
    "write_json",
    "write_telemetry",
]

if not TYPE_CHECKING:  # which must see a wrong name
    __getattr__ = lazily(__name__)  # see there for the rule
