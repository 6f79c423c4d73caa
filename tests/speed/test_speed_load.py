"""Loads: closed and open loops, the window's clock, the order of prompts, the warm-up."""

from __future__ import annotations

import asyncio
import weakref
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from speed_making import make_outcome, stream

from paribus.catalog import SetPrompt
from paribus.conditions import EnvironmentFault
from paribus.speed.load import LoadRequest, WindowPlan, poisson, run_closed_loop, run_open_loop, run_window
from paribus.speed.measure import admitted, engine_load, in_window
from paribus.speed.order import balanced, cycles, unique_line
from paribus.speed.summary import EngineLoad
from paribus.speed.warm_up import WarmUp, caps, difference, warm_up
from paribus.speed.window import Window

SECOND = 10**9


class Fake:
    """A server on a clock of its own, in which an answer takes `seconds(index)`; errors as told."""

    def __init__(self, seconds=lambda index: 1.0, error=lambda index: None, retry_after=None):
        self.seconds, self.error, self.retry_after = seconds, error, retry_after
        self.active = self.most = 0
        self.sent: list[tuple[int, str, int]] = []
        self.aborted = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.scale = 1000  # a second of the fake clock is a millisecond

    def now_ns(self):
        return round((self.loop.time() - self.began) * self.scale * SECOND)

    async def send(self, body, *, index, prompt_id, due_ns, phase, worker=0):
        sent = self.now_ns()
        self.sent.append((index, phase, worker))
        self.active += 1
        self.most = max(self.most, self.active)
        error = self.error(index)
        try:
            await asyncio.wait_for(self.aborted.wait(), self.seconds(index) / self.scale)
            error = "cancelled"
        except TimeoutError:
            pass
        self.active -= 1
        return make_outcome(
            index=index, prompt_id=prompt_id, due_ns=due_ns, sent_ns=sent, ended_ns=self.now_ns(), error=error,
            phase=phase, worker=worker, retry_after_s=self.retry_after,
        )  # fmt: skip

    def abort(self):
        self.aborted.set()


def requests(n=None):
    i = 0
    while n is None or i < n:
        yield LoadRequest(i, f"p{i}", b"{}")
        i += 1


def test_a_closed_loop_keeps_as_many_open_as_asked_and_sends_each_request_once():
    async def go():
        fake, outcomes = Fake(), []
        await run_closed_loop(fake, requests(20), 4, on_end=outcomes.append)
        return fake, outcomes

    fake, outcomes = asyncio.run(go())
    assert fake.most == 4
    assert sorted(o.index for o in outcomes) == list(range(20))
    assert {o.phase for o in outcomes} == {"measured"}
    assert all(o.due_ns <= o.sent_ns for o in outcomes)


def test_a_failed_request_is_never_sent_again_and_its_worker_waits_as_told():
    async def go():
        fake = Fake(seconds=lambda i: 0.01, error=lambda i: "http_429" if i == 0 else None, retry_after=0.2)
        began = fake.loop.time()
        await run_closed_loop(fake, requests(3), 1)
        return fake, fake.loop.time() - began

    fake, took = asyncio.run(go())
    assert [i for i, *_ in fake.sent] == [0, 1, 2]
    assert took >= 0.2


def test_a_load_on_a_dead_server_ends():
    async def go():
        fake = Fake(seconds=lambda i: 0.001, error=lambda i: "connect")
        fake.retry_after = None
        outcomes = []
        await run_closed_loop(fake, requests(), 32, on_end=outcomes.append)
        return outcomes

    assert 96 <= len(asyncio.run(go())) <= 96 + 32


def test_storing_an_answer_never_holds_up_the_next_request():
    """Four answers end at once: all four workers have sent again before the first is stored."""

    class Together(Fake):
        async def send(self, body, **about):
            outcome = await super().send(body, **about)
            await together.wait()
            return outcome

    async def go():
        nonlocal together
        together = asyncio.Barrier(4)
        server, sent_before = Together(), []
        await run_closed_loop(server, requests(8), 4, on_end=lambda outcome: sent_before.append(len(server.sent)))
        return sent_before

    together = None

    assert asyncio.run(go())[:4] == [8, 8, 8, 8]


def test_a_load_whose_answers_cannot_be_stored_ends_and_says_so():
    async def go():
        fake = Fake()

        def full(outcome):
            raise EnvironmentFault("no space left")

        with pytest.raises(EnvironmentFault, match="no space left"):
            await run_closed_loop(fake, requests(), 4, on_end=full)
        return fake

    fake = asyncio.run(go())
    assert fake.aborted.is_set()
    assert len(fake.sent) <= 8, "each worker sends one more at most"


class Prompted(Fake):
    """A server whose `send` returns in the turn after an abort, as the client's does; every third answer fails."""

    def __init__(self):
        super().__init__(error=lambda i: "http_429" if i % 3 == 2 else None, retry_after=20.0)
        self.over = self.loop.create_future()

    def abort(self):
        if not self.over.done():
            self.over.set_result(None)

    async def send(self, body, *, index, **about):
        self.sent.append((index, about["phase"], about["worker"]))
        if not self.error(index):
            await self.over
        error = self.error(index) or "cancelled"
        return make_outcome(index=index, error=error, retry_after_s=self.retry_after, **about)


def test_a_load_that_is_interrupted_hands_over_what_was_under_way_and_waits_for_nobody():
    async def go():
        server, outcomes = Prompted(), []
        load = asyncio.create_task(run_closed_loop(server, requests(), 3, on_end=outcomes.append))
        while not outcomes:
            await asyncio.sleep(0)
        load.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(load, 10)
        return server, outcomes

    server, outcomes = asyncio.run(go())
    assert [index for index, *_ in server.sent] == [0, 1, 2], "nobody sends again"
    assert {o.index: o.error for o in outcomes} == {0: "cancelled", 1: "cancelled", 2: "http_429"}


def test_a_load_keeps_no_answer_in_memory():
    async def go():
        fake, answers, alive = Fake(), [], []

        def stored(outcome):
            answers.append(weakref.ref(outcome))
            alive.append(sum(answer() is not None for answer in answers))

        await run_closed_loop(fake, requests(40), 2, on_end=stored)
        return alive

    alive = asyncio.run(go())
    assert len(alive) == 40
    assert max(alive) <= 6


def test_an_open_loop_sends_when_due_however_many_are_under_way():
    async def go():
        fake = Fake(seconds=lambda i: 0.5)
        fake.scale = 1  # due times are waited for on the real clock
        outcomes = []
        due = iter(range(0, SECOND // 10, SECOND // 100))
        await run_open_loop(fake, requests(10), due, on_end=outcomes.append)
        return fake, outcomes

    fake, outcomes = asyncio.run(go())
    assert fake.most == 10
    assert all(o.sent_ns >= o.due_ns for o in outcomes)


def test_poisson_gaps_have_the_mean_they_should_and_repeat_with_their_seed():
    stream_of = poisson(4.0, 0, "s")
    due = [next(stream_of) for _ in range(4000)]
    assert due == sorted(due)
    assert due[-1] / 4000 / SECOND == pytest.approx(0.25, rel=0.05)
    again = poisson(4.0, 0, "s")
    assert [next(again) for _ in range(5)] == due[:5]


def test_the_window_waits_for_the_soak_lasts_as_asked_and_keeps_its_load_to_the_end():
    async def go():
        fake = Fake(seconds=lambda i: 1.0 + (i % 7) / 5)
        plan = WindowPlan(concurrency=4, seconds=10, completions=40)
        outcomes = []
        await run_window(fake, requests(), plan, on_end=outcomes.append)
        return plan, outcomes

    plan, outcomes = asyncio.run(go())
    window = plan.window
    assert window.start_ns % SECOND == 0
    assert window.end_ns % SECOND == 0
    assert window.seconds >= 10
    inside = [o for o in outcomes if window.start_ns < o.ended_ns <= window.end_ns]
    assert len(inside) == plan.inside >= 40
    measured = [o for o in outcomes if o.phase == "measured"]
    assert all(o.error is None for o in measured), "what was sent in the window is waited for"
    assert all(o.sent_ns >= window.start_ns for o in measured)
    last = max(o.ended_ns for o in measured)
    assert sum(o.ended_ns >= last and o.phase == "soak" for o in outcomes) >= 1, "others kept the load up"


def test_a_window_that_never_fills_up_is_given_up_in_the_end():
    plan = WindowPlan(concurrency=1, seconds=10, completions=10**9, limit=2)
    plan.saw(make_outcome(ended_ns=SECOND))
    plan.tick(21 * SECOND)
    assert plan.window is None
    plan.tick(22 * SECOND + 1)
    assert plan.window.seconds == 20


def prompts(per_kind: dict[str, int]) -> list[SetPrompt]:
    return [
        SetPrompt(id=f"{kind}{i}", prompt="x", kind=kind, length="long", split="measured")
        for kind, n in per_kind.items()
        for i in range(n)
    ]


@given(
    st.dictionaries(st.sampled_from(["chat", "code", "json", "tools"]), st.integers(1, 6), min_size=1),
    st.integers(1, 5),
)
def test_each_cycle_holds_each_prompt_once(per_kind, start):
    given_prompts = prompts(per_kind)
    assert Counter(p.id for p in balanced(given_prompts, start)) == Counter(p.id for p in given_prompts)


def test_any_stretch_holds_the_kinds_in_their_shares():
    order = balanced(prompts({"chat": 12, "code": 12, "json": 12}), start=3)
    for i in range(0, 36, 6):
        assert all(abs(n - 2) <= 1 for n in Counter(p.kind for p in order[i : i + 6]).values())


def test_starts_and_cycles_have_orders_of_their_own_and_repeat():
    given_prompts = prompts({"chat": 8, "code": 8})
    orders = {tuple(p.id for p in balanced(given_prompts, s, c)) for s in (1, 2) for c in (0, 1)}
    assert len(orders) == 4
    turn = cycles(given_prompts, 1)
    assert [next(turn).id for _ in range(32)][16:] == [p.id for p in balanced(given_prompts, 1, 1)]


def test_no_two_requests_share_their_line():
    lines = {unique_line(tag, i) for tag in ("run 1", "run 2") for i in range(500)}
    assert len(lines) == 1000
    assert unique_line("run 1", 7) == unique_line("run 1", 7)


@pytest.mark.parametrize(("concurrency", "cap"), [(16, 1024), (16, 64), (4, 64), (16, 16)])
def test_a_warm_up_block_passes_through_every_number_of_active_requests(concurrency, cap):
    limits = caps(concurrency, cap)
    assert len(set(limits)) == len(limits) == concurrency
    assert max(limits) <= cap


def test_a_warm_up_at_one_request_has_more_than_one_prompt():
    assert caps(1, 1024) == [64, 64]


class Speeding:
    """A server whose answers come at the given speeds, block after block (tokens a second)."""

    def __init__(self, speeds, size):
        self.speeds, self.size, self.n = speeds, size, 0

    def now_ns(self):
        return 0

    def abort(self):
        pass

    async def send(self, body, *, index, prompt_id, due_ns, phase, worker=0):
        gap = 1000 / self.speeds[min(self.n // self.size, len(self.speeds) - 1)]
        self.n += 1
        return stream([(10 + gap * i, 1) for i in range(20)], index=index, prompt_id=prompt_id, phase=phase)


@pytest.mark.parametrize(
    ("speeds", "blocks", "settled"),
    [([50, 100, 100.5], 3, True), ([100, 100], 2, True), ([10, 20, 40, 80, 160], 4, False), ([100], 1, False)],
)
def test_the_warm_up_goes_on_until_two_blocks_agree(speeds, blocks, settled):
    most = 1 if len(speeds) == 1 else 4
    server = Speeding(speeds, 2)
    done = asyncio.run(
        warm_up(server, prompts({"chat": 2}), lambda p, i, cap: b"", concurrency=1, cap=64, max_blocks=most)
    )
    assert (len(done.speeds), done.settled) == (blocks, settled)
    assert bool(done.unsettled) != settled
    assert {o.phase for o in done.outcomes} == {"warm-up"}


def test_why_a_warm_up_is_not_settled_is_said():
    assert "differ by 50.0%" in WarmUp((1.0, 2.0), False, ()).unsettled
    assert "two are needed" in WarmUp((1.0,), False, ()).unsettled
    assert difference([0, 0]) == 1.0


def gauges(*values):
    return [(i * SECOND, {"running": float(r), "waiting": float(w)}) for i, (r, w) in enumerate(values)]


def test_gauges_count_inside_the_window_only():
    readings = gauges((0, 16), (14, 2), (15, 1), (16, 0), (2, 0))
    seen = in_window(readings, Window(SECOND, 3 * SECOND))
    assert engine_load(seen) == EngineLoad(readings=3, running_mean=15.0, waiting_mean=1.0)
    assert admitted(seen) == 14
    assert in_window(readings, None) == []


def test_an_engine_without_gauges_says_nothing():
    assert engine_load([{}, {}]) is None
    assert admitted([{}, {}, {}]) is None
    assert admitted([{"running": 1.0}] * 2) is None, "two readings are no percentile"
