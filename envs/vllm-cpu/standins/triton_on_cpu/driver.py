"""The driver: this machine's processor."""

import time

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase


class CpuDriver(DriverBase):
    """Always there; the interpreter asks it for little."""

    @classmethod
    def is_active(cls):
        return True

    def map_python_to_cpp_type(self, ty):
        return ty

    def get_current_target(self):
        return GPUTarget("cpu", 0, 1)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_current_device(self):
        return 0

    def get_current_stream(self, _device):
        return 0

    def get_benchmarker(self):
        return benchmark


def benchmark(kernel_call, *, quantiles, **_):
    """One timing for all quantiles, in milliseconds: nothing is tuned here."""
    began = time.perf_counter()
    kernel_call()
    return [1000 * (time.perf_counter() - began)] * len(quantiles)
