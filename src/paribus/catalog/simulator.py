"""The user simulator of a dialogue task: the task's file pins it, the contributor says where it is served.

Another simulator makes another benchmark (one moved airline from about 50 to 78), so it is a declared condition that
gates every comparison. `PARIBUS_USER_SIM_URL` holds the address of an OpenAI-compatible server, up to and with `/v1`,
or the word `scripted`: a user who follows a script, for tests and trials on small machines, never ranked.
"""

from __future__ import annotations

import os
from typing import Any

from pydantic import Field, ValidationError

from paribus.catalog.faults import one_sentence
from paribus.catalog.models import Scalar, Spec
from paribus.catalog.tasks import QualityTask
from paribus.conditions import UsageError

URL_VARIABLE = "PARIBUS_USER_SIM_URL"
KEY_VARIABLE = "PARIBUS_USER_SIM_KEY"
"""Optional: the API key of that server."""

SCRIPTED = "scripted"


class UserSimulator(Spec):
    """An open model, pinned: its hub id (which is also the name that its server knows), revision and sampling.

    `cap`: tokens of one message of the user, reasoning included. `extra`: more fields of each request.
    """

    model: str = Field(min_length=1)
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    sampling: dict[str, Scalar]
    cap: int = Field(ge=1)
    extra: dict[str, Any] = {}
    source: str

    @property
    def condition(self) -> str:
        """What gates a comparison, in words: model, revision, sampling and the other fields."""
        settings = ", ".join(f"{name} {value}" for name, value in sorted({**self.sampling, **self.extra}.items()))
        return f"{self.model}@{self.revision[:12]}, {settings}"


def simulator_of(task: QualityTask) -> UserSimulator | None:
    """The simulator that a task's file pins; None for a task without one. Raises `UsageError` for a wrong one."""
    given = task.settings.get("user_simulator")
    if given is None:
        return None
    try:
        return UserSimulator.model_validate(given)
    except ValidationError as error:
        raise UsageError(f"tasks/quality/{task.task}.yaml, user_simulator: {one_sentence(error)}") from error


def simulator_url() -> str | None:
    """Where the contributor serves the simulator (or `scripted`); None when nothing is said."""
    return os.environ.get(URL_VARIABLE, "").strip() or None


def simulator_condition(task: QualityTask, url: str | None) -> str | None:
    """The declared condition `user_simulator` of a task; None for a task without a simulator."""
    simulator = simulator_of(task)
    if simulator is None:
        return None
    return SCRIPTED if url == SCRIPTED else simulator.condition


def lacks_simulator(task: QualityTask, url: str | None) -> str | None:
    """Why a task can't run for want of its user simulator; None when it can, or needs none."""
    simulator = simulator_of(task)
    if simulator is None or url is not None:
        return None
    return (
        f"it needs its user simulator: serve {simulator.model} on another card or machine and set {URL_VARIABLE} "
        f"to its address (or to `{SCRIPTED}`, for a trial that is never ranked)"
    )
