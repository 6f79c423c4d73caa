"""The compiler that is never called."""

from triton.backends.compiler import BaseBackend


class CpuBackend(BaseBackend):
    """Refuses to compile: without TRITON_INTERPRET=1 that is said, and nothing runs wrong."""

    @staticmethod
    def supports_target(target):
        return target.backend == "cpu"

    def hash(self):
        return "triton-on-cpu"

    def parse_options(self, options):
        raise RuntimeError("this stand-in compiles nothing: set TRITON_INTERPRET=1")

    def add_stages(self, stages, options, *_):
        raise RuntimeError("this stand-in compiles nothing: set TRITON_INTERPRET=1")

    def load_dialects(self, context):
        raise RuntimeError("this stand-in compiles nothing: set TRITON_INTERPRET=1")

    def get_module_map(self):
        return {}
