"""The client knows how late it runs."""

from __future__ import annotations

import asyncio
import gc
import time

from paribus.wire import Lag, LagMeter, run


async def measured(block_s: float, rounds: int) -> tuple[Lag, Lag]:
    async with LagMeter() as meter:
        await asyncio.sleep(0.5)
        idle = meter.read()
        meter.mark()
        for _ in range(rounds):
            end = time.monotonic() + block_s
            while time.monotonic() < end:
                pass
            await asyncio.sleep(0.001)
        return idle, meter.read()


def test_a_blocked_loop_shows_as_lag_and_as_cpu() -> None:
    idle, busy = run(measured(0.08, 5))
    assert idle.samples > 5
    assert idle.lag_ms_p50 is not None
    assert idle.lag_ms_p99 is not None
    assert idle.lag_ms_p50 <= idle.lag_ms_p99
    # Stamps written while the loop was blocked for 80 ms were read half a block late on average.
    assert busy.lag_ms_p50 is not None
    assert busy.lag_ms_p50 > 10
    assert busy.lag_ms_p50 > idle.lag_ms_p50
    assert busy.cpu_share > 2 * idle.cpu_share


def test_no_sample_is_no_figure() -> None:
    assert LagMeter().read().lag_ms_p99 is None


def test_the_helper_is_gone_afterwards() -> None:
    async def once() -> LagMeter:
        async with LagMeter() as meter:
            pass
        return meter

    meter = run(once())
    assert meter._process is not None
    assert meter._process.poll() is not None


def test_run_returns_the_result_and_leaves_the_collector_as_it_was() -> None:
    before = gc.get_threshold()
    gc.set_threshold(699, 9, 8)

    async def loop_name() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert run(loop_name()) == "uvloop"
    left = gc.get_threshold()
    gc.set_threshold(*before)
    assert left == (699, 9, 8)
