"""A job that is told to stop after a load has ended keeps the start that it measured, then stops."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from private_catalog import write_hosted
from test_hosted import OWN, clone, planned

from paribus.engines import run_job
from paribus.machine import Stopped, parent
from paribus.speed import run as speed_run
from scripted import Scripted

__all__ = ["clone"]


@pytest.mark.parametrize(("number", "code", "bounded"), [(signal.SIGINT, 130, 1), (signal.SIGTERM, 143, 2)])
def test_a_start_whose_load_has_ended_is_kept(
    clone: Path,
    scripted: Scripted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    code: int,
    bounded: int,
) -> None:
    catalog, plan = planned(clone, write_hosted(tmp_path / "mine", OWN, model="f5-n40-i500"))
    monkeypatch.setenv("OWN_URL", scripted.base_url)
    monkeypatch.setenv("OWN_API_KEY", "k")
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.delenv("PARIBUS_WORKFLOW_PID", raising=False)
    monkeypatch.setattr(parent, "LAST_RESORT_S", 1e6)
    armed: list[int] = []
    for module in ("paribus.machine.parent", "paribus.engines.job"):
        monkeypatch.setattr(f"{module}.arm_last_resort", armed.append)
    finish = speed_run.finish

    def told_to_stop(*args: Any, **more: Any) -> Any:
        os.kill(os.getpid(), number)
        return finish(*args, **more)

    monkeypatch.setattr(speed_run, "finish", told_to_stop)
    before = signal.getsignal(number)
    with pytest.raises(Stopped) as stopped:
        run_job(
            clone,
            plan,
            plan.jobs[0].job,
            lambda session, each, to: speed_run.measure_speed_start(session, each, catalog, to),
            catalog=catalog,
            tell=False,
        )
    assert stopped.value.code == code
    folder = clone / plan.results / plan.jobs[0].measures[0].run / "start-1"
    assert (folder / "manifest.json").is_file()
    assert len(armed) == bounded, "whoever isn't a person at a keyboard waits no longer than ever"
    assert signal.getsignal(number) == before
