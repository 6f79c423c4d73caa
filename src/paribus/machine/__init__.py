"""The machine: its facts and label, locks, process trees, telemetry, and files that are whole or not there."""

from paribus.machine.facts import observe_machine
from paribus.machine.files import write_atomic, write_json
from paribus.machine.label import machine_label
from paribus.machine.scrub import scrub

__all__ = ["machine_label", "observe_machine", "scrub", "write_atomic", "write_json"]
