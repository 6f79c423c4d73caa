"""Telemetry: others' load told apart from ours, energy, throttling; and it survives what it watches."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.machine import Telemetry, load_of, read_telemetry, write_telemetry
from paribus.machine.cpu import parse_cpu_times, tree_seconds
from paribus.machine.load import grown
from paribus.machine.parent import start_time
from paribus.machine.rapl import Rapl

SECOND = 1_000_000_000


def row(second, **values):
    return {"t_ns": int(second * SECOND), **values}


def cpu(second, total, idle, stolen, own):
    return row(second, cpu_total_s=total, cpu_idle_s=idle, cpu_stolen_s=stolen, cpu_own_s=own)


def wait_for_rows(telemetry, count):
    end = time.monotonic() + 30
    while len(telemetry.rows()) < count:
        assert time.monotonic() < end, "no readings came"
        time.sleep(0.05)
    return telemetry.rows()


class TestLoad:
    def test_others_are_what_is_neither_idle_nor_stolen_nor_ours(self):
        rows = [cpu(0, 100, 50, 1, 10), cpu(10, 120, 58, 3, 18)]
        load = load_of(rows, 0, 10 * SECOND)
        assert (load.busy_share, load.stolen_share, load.own_share) == pytest.approx((2 / 20, 2 / 20, 8 / 20))

    def test_edges_between_two_readings_are_interpolated(self):
        rows = [row(0, package_j=0.0), row(1, package_j=100.0), row(2, package_j=300.0)]
        assert load_of(rows, SECOND // 2, 3 * SECOND // 2).energy_j == pytest.approx(50 + 100)

    def test_energy_scope_is_the_board_before_the_package(self):
        board = [row(t, energy_j=200.0 * t, package_j=50.0 * t, power_w=201.0) for t in range(11)]
        load = load_of(board, 0, 10 * SECOND)
        assert (load.energy_j, load.energy_scope) == (2000.0, "board")
        assert load.power_integral_j == pytest.approx(2010.0)
        package = load_of([{k: v for k, v in r.items() if k in {"t_ns", "package_j"}} for r in board], 0, 10 * SECOND)
        assert (package.energy_j, package.energy_scope) == (500.0, "package")

    def test_slow_with_a_reason_is_throttled(self):
        rows = [row(t, clock_mhz=1980.0, throttle_bits=0.0) for t in range(90)]
        rows += [row(90 + t, clock_mhz=1500.0, throttle_bits=float(0x40)) for t in range(10)]
        load = load_of(rows, 0, 100 * SECOND)
        assert load.throttled_share == pytest.approx(0.1)
        assert load.throttle_reasons == ("hardware thermal",)
        assert not load.power_cap_only

    def test_a_reason_alone_or_a_slow_idle_card_is_not(self):
        always_capped = [row(t, clock_mhz=1980.0, throttle_bits=float(0x4)) for t in range(100)]
        assert load_of(always_capped, 0, 100 * SECOND).throttled_share == 0
        idle = [row(t, clock_mhz=1980.0, throttle_bits=0.0) for t in range(90)]
        idle += [row(90 + t, clock_mhz=300.0, throttle_bits=float(0x1)) for t in range(10)]
        assert load_of(idle, 0, 100 * SECOND).throttled_share == 0

    @pytest.mark.parametrize("clocks", [[1200.0] * 100, [1980.0] * 7 + [1200.0] * 93], ids=["all of it", "most of it"])
    @pytest.mark.parametrize("bit", [0x8, 0x20, 0x40, 0x80])
    def test_a_card_that_is_hot_from_its_first_second_on_is_throttled(self, clocks, bit):
        rows = [row(t, clock_mhz=mhz, throttle_bits=0.0 if mhz > 1900 else float(bit)) for t, mhz in enumerate(clocks)]
        load = load_of(rows, 0, 100 * SECOND)
        assert load.throttled_share == pytest.approx(clocks.count(1200.0) / 100)
        assert not load.power_cap_only

    def test_a_power_cap_alone_is_told_apart(self):
        rows = [row(t, clock_mhz=1980.0 if t < 90 else 1400.0, throttle_bits=float(0x4)) for t in range(100)]
        load = load_of(rows, 0, 100 * SECOND)
        assert load.power_cap_only
        assert load.throttle_reasons == ("power cap",)

    def test_without_readings_nothing_is_claimed(self):
        load = load_of([], 0, SECOND)
        assert load == replace(load, samples=0, busy_share=None, energy_j=None, throttled_share=None)

    @given(st.lists(st.tuples(*[st.floats(0, 5, allow_nan=False) for _ in range(4)]), min_size=2, max_size=20))
    def test_shares_stay_shares_whatever_the_counters_say(self, steps):
        rows, sums = [], [0.0, 0.0, 0.0, 0.0]
        for second, step in enumerate(steps):
            sums = [a + b for a, b in zip(sums, step, strict=True)]
            rows.append(cpu(second, *sums))
        load = load_of(rows, 0, len(rows) * SECOND)
        for share in (load.busy_share, load.stolen_share, load.own_share):
            assert share is None or 0 <= share <= 1

    @given(st.lists(st.floats(0, 1e6), min_size=2, max_size=30), st.floats(0, 1))
    def test_growth_over_parts_adds_up(self, steps, cut):
        rows, total = [], 0.0
        for second, step in enumerate(steps):
            total += step
            rows.append(row(second, energy_j=total))
        end = (len(rows) - 1) * SECOND
        middle = int(end * cut)
        parts = [grown(rows, "energy_j", a, b) or 0.0 for a, b in ((0, middle), (middle, end))]
        assert sum(parts) == pytest.approx(grown(rows, "energy_j", 0, end), rel=1e-6, abs=1e-3)


def test_the_file_holds_what_was_read_with_time_from_the_measured_part(tmp_path):
    rows = [cpu(100, 5000, 4000, 1, 7), row(101, energy_j=9e9, power_w=300.5, clock_mhz=1980.0, throttle_bits=4.0)]
    write_telemetry(tmp_path / "telemetry.parquet", rows, 101 * SECOND)
    first, second = read_telemetry(tmp_path / "telemetry.parquet")
    assert (first["t_ns"], second["t_ns"]) == (-SECOND, 0)
    # Cumulative columns count from the first reading: uptime and a card's lifetime energy are nobody's business.
    assert (first["cpu_total_s"], second["energy_j"], second["cpu_total_s"]) == (0.0, 0.0, None)
    assert second["power_w"] == 300.5


def test_a_load_is_the_same_from_the_file(tmp_path):
    rows = [cpu(t, 10 * t, 5 * t, t, 2 * t) for t in range(20)]
    write_telemetry(tmp_path / "telemetry.parquet", rows, 4 * SECOND)
    live = load_of(rows, 4 * SECOND, 16 * SECOND)
    assert load_of(read_telemetry(tmp_path / "telemetry.parquet"), 0, 12 * SECOND) == live


def test_own_work_is_not_others_work():
    # By CPU time and by readings, never by the clock: on a busy machine a second may hold little of either.
    with Telemetry(hertz=20) as telemetry:
        began = wait_for_rows(telemetry, 2)[-1]["t_ns"]
        worker = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            used = wait_until_used(worker.pid, 0.6)
            # The next reading but one was begun after that moment.
            ended = wait_for_rows(telemetry, len(telemetry.rows()) + 2)[-1]["t_ns"]
            load = telemetry.load(began, ended)
        finally:
            worker.kill()
            worker.wait()
        rows = telemetry.rows()
    total, idle, stolen = (grown(rows, f"cpu_{name}_s", began, ended) for name in ("total", "idle", "stolen"))
    own = load.own_share * total
    # All that our worker used is ours, but for a tick of each reading; and what is ours is nobody else's.
    assert own >= used - 0.05
    assert load.busy_share * total <= max(0.0, total - idle - stolen - own) + 1e-6
    assert load.others_share is not None
    assert load.others_share <= 1


def wait_until_used(pid, seconds):
    """Wait until a process has used so much CPU time, however long that takes; what it has used."""
    end = time.monotonic() + 120
    while (used := tree_seconds(pid)) < seconds:
        assert time.monotonic() < end, f"{used} s of CPU in two minutes"
        time.sleep(0.02)
    return used


def test_time_of_ended_children_stays_counted():
    before = tree_seconds(os.getpid())
    script = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert tree_seconds(os.getpid()) - before >= 0.25


def test_killing_the_sampler_keeps_what_it_read():
    with Telemetry(hertz=50) as telemetry:
        wait_for_rows(telemetry, 3)
        os.kill(telemetry.pid, signal.SIGKILL)
        kept = len(telemetry.rows())
        assert kept >= 3
    assert len(telemetry.rows()) >= kept


def test_a_sampler_that_hangs_does_not_hang_the_job():
    with Telemetry(hertz=50) as telemetry:
        wait_for_rows(telemetry, 1)
        pid = telemetry.pid
        os.kill(pid, signal.SIGSTOP)
    assert start_time(pid) is None


def test_the_sampler_ends_with_a_killed_job():
    script = (
        "import time; from paribus.machine import Telemetry; "
        "t = Telemetry().start(); print(t.pid, flush=True); time.sleep(60)"
    )
    job = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    sampler = int(job.stdout.readline())
    time.sleep(0.5)
    job.kill()
    job.wait()
    end = time.monotonic() + 20
    while start_time(sampler) is not None:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_blocked_driver_leaves_the_cpu_readings(tmp_path):
    (tmp_path / "pynvml.py").write_text(
        "import time\nclass NVMLError(Exception): pass\ndef nvmlInit(): time.sleep(600)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "paribus.machine.sampler", str(os.getpid()), "0.05"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    lines = [process.stdout.readline() for _ in range(5)]
    process.kill()
    process.wait()
    assert all('"cpu_total_s"' in line for line in lines)


def test_the_first_line_of_proc_stat_is_read_as_the_kernel_writes_it():
    times = parse_cpu_times("cpu  100 20 30 400 50 6 7 80 9 10\ncpu0 1 2 3\n")
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert (times.total, times.idle, times.stolen) == pytest.approx((693 * tick, 450 * tick, 80 * tick))
    assert parse_cpu_times("cpu  1 1 1 1\n").stolen == 0


def test_rapl_adds_packages_and_unwraps(tmp_path):
    for number, energy, name in (("0", 900, "package-0"), ("1", 100, "package-1"), ("2", 7, "psys")):
        zone = tmp_path / f"intel-rapl:{number}"
        zone.mkdir()
        (zone / "name").write_text(f"{name}\n")
        (zone / "max_energy_range_uj").write_text("1000\n")
        (zone / "energy_uj").write_text(f"{energy}\n")
    (tmp_path / "intel-rapl:0:0").mkdir()
    rapl = Rapl(tmp_path)
    assert rapl.readable
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("50\n")
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("300\n")
    (tmp_path / "intel-rapl:2" / "energy_uj").write_text("900\n")
    assert rapl.joules() == pytest.approx((150 + 200) / 1e6)
    assert Rapl(tmp_path / "none").joules() is None
