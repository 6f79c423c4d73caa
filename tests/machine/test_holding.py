"""Signals that wait while something is written."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from paribus.machine import Hold
from paribus.machine.holding import PRESS_S, SIGNALS


class Told(Exception):
    """What the handler that was there before makes of a signal."""


def tell(number: int, _frame: object) -> None:
    raise Told(number)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.signal(number, tell) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_for_the_end_of_the_block(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    written, seen = [], []
    with pytest.raises(Told, match=str(int(number))), Hold("writing", on_held=seen.append) as hold:  # noqa: PT012 (the signal comes in the block)
        hold.begin()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)  # the same press
        written.append(True)
    assert written
    assert seen == [number]
    assert capfd.readouterr().err == "\nparibus: writing\n"
    assert signal.getsignal(number) is tell


def test_a_second_one_does_not_wait() -> None:
    with pytest.raises(Told), Hold("writing") as hold:  # noqa: PT012 (the signal comes in the block)
        hold.begin()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(2 * PRESS_S)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it went on")


def test_without_delivery_it_is_only_noted() -> None:
    with Hold("writing", deliver=False) as hold:
        hold.begin()
        os.kill(os.getpid(), signal.SIGTERM)
    assert hold.held == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is tell


def test_before_it_begins_and_after_its_block_nothing_waits() -> None:
    with pytest.raises(Told), Hold("writing"):  # noqa: PT012 (the signal comes in the block)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it waited")
    hold = Hold("writing")
    hold.begin()
    with pytest.raises(Told):
        os.kill(os.getpid(), signal.SIGINT)


def test_an_error_in_the_block_loses_no_signal() -> None:
    with pytest.raises(Told), Hold("writing") as hold:  # noqa: PT012 (the signal comes in the block)
        hold.begin()
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("on purpose")


def test_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Hold("writing") as hold:
        hold.begin()
        os.kill(os.getpid(), signal.SIGHUP)
        assert hold.held is None


def test_in_another_thread_it_holds_nothing() -> None:
    def work() -> None:
        with Hold("writing") as hold:
            hold.begin()
            found.append(signal.getsignal(signal.SIGINT))

    found: list[object] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [tell]
