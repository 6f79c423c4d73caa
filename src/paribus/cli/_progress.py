"""What a person sees while a workflow runs: a line a step. Snakemake's own log file keeps everything."""

from __future__ import annotations

import logging
import time
from typing import Any

from snakemake_interface_logger_plugins.common import LogEvent

NOISE = ("CalledProcessError", "At least one job did not complete", "Exiting because a job execution failed")
"""Errors of Snakemake that only repeat that a step failed; the step's own words follow from its log."""
WORTH_SAYING = ("Nothing to be done", "Will exit after finishing", "Terminating processes")


class Steps(logging.Filter):
    """Lets a step's start, warnings and errors through, and remembers how many steps are done."""

    def __init__(self) -> None:
        super().__init__()
        self.done, self.total = 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        event = getattr(record, "event", None)
        if event == LogEvent.PROGRESS:
            self.done, self.total = record.__dict__["done"], record.__dict__["total"]
            return False
        if event == LogEvent.RUN_INFO:
            self.total = self.total or int(record.__dict__.get("stats", {}).get("total", 0))
        if event == LogEvent.JOB_INFO:
            return bool(record.__dict__.get("rule_msg"))
        if event == LogEvent.JOB_ERROR:
            return True
        text = str(record.msg)
        if record.levelno >= logging.WARNING:
            return not any(words in text for words in NOISE)
        return text.startswith(WORTH_SAYING)


class OneLine(logging.Formatter):
    """`14:02:31  7/35  Measuring ...`"""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.steps = steps

    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", None)
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        if event == LogEvent.JOB_INFO:
            number = f"{self.steps.done + 1}/{self.steps.total}" if self.steps.total else ""
            return f"{clock} {number:>7}  {record.__dict__['rule_msg']}"
        if event == LogEvent.JOB_ERROR:
            return f"{clock}  failed:  {record.__dict__['rule_name']} (log: {', '.join(record.__dict__['log'])})"
        return str(record.msg)


def show_steps(workflow: Any, logger: logging.Logger) -> None:
    """Put our lines in place of Snakemake's on the screen, unless its own were asked for (`--verbose`, `-p`, `-n`)."""
    settings = workflow.output_settings
    if settings.dryrun or settings.verbose or settings.printshellcmds or settings.debug_dag:
        return
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            steps = Steps()
            handler.addFilter(steps)
            handler.setFormatter(OneLine(steps))
