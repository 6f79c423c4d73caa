"""A short copy and matrix product on the card, before anything is measured: does it run at all, and about how fast?

Torch does it, where there is one: in an engine's environment that is already built, or in ours. It isn't installed for
this. The figures are written beside the machine's facts and published nowhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from paribus.machine.processes import clean_environment

LONGEST_S = 120
SLOW = 0.5
"""A copy below this share of the memory's bandwidth is said: half of what the card should do is no accident."""

SCRIPT = """
import json, time, torch
if not torch.cuda.is_available():
    raise SystemExit("torch sees no card")
card = torch.device("cuda")
def seconds(call, times):
    call(); torch.cuda.synchronize(); began = time.perf_counter()
    for _ in range(times): call()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / times
source = torch.empty(2**28, dtype=torch.uint8, device=card)
target = torch.empty_like(source)
copy = 2 * source.numel() / seconds(lambda: target.copy_(source), 20) / 1e9
a = torch.randn(4096, 4096, dtype=torch.bfloat16, device=card)
product = 2 * 4096**3 / seconds(lambda: a @ a, 20) / 1e12
print(json.dumps({"copy_gb_s": round(copy), "matrix_tflops": round(product, 1), "torch": torch.__version__}))
"""


@dataclass(frozen=True)
class Probe:
    """`copy_gb_s` (read and written bytes, GB a second) and `matrix_tflops` (bf16, 4,096 square), or why not."""

    copy_gb_s: float | None = None
    matrix_tflops: float | None = None
    skipped: str = ""
    failed: str = ""


def probe(root: Path, program: str = SCRIPT, limit_s: float = LONGEST_S) -> Probe:
    """Copy and multiply on the first visible card, with the torch of an environment below `root` or of our own."""
    python = torch_python(root)
    if python is None:
        return Probe(skipped="no environment here has torch yet")
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", program],
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
            env=clean_environment(),
        )
    except subprocess.TimeoutExpired:
        return Probe(failed=f"it did not end in {limit_s:g} s")
    except OSError as error:
        return Probe(failed=f"{python.name} can't be started: {error.strerror}")
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        return Probe(failed=said[-1][:200])
    try:
        told = json.loads(done.stdout.strip().splitlines()[-1])
        return Probe(copy_gb_s=float(told["copy_gb_s"]), matrix_tflops=float(told["matrix_tflops"]))
    except (ValueError, KeyError, TypeError, IndexError):
        return Probe(failed="it printed no figures")


def torch_python(root: Path) -> Path | None:
    """A Python that has torch: of a built engine's environment, the newest first, else our own; None without one."""
    folders = sorted(root.glob("build/envs/*/bin/python"), key=lambda p: p.parent.stat().st_mtime, reverse=True)
    for python in (*folders, Path(sys.executable)):
        if any(python.parent.parent.glob("lib/python*/site-packages/torch")):
            return python
    return None
