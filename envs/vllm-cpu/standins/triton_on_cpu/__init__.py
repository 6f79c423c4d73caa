"""A Triton backend named `cpu` that compiles nothing: with TRITON_INTERPRET=1 kernels run in Triton's own interpreter.

vLLM's build for CPUs asks whether Triton has a backend of that name before it uses kernels written in Triton, as those
of its diffusion path are. triton-cpu, which has one, is published nowhere as a wheel.
"""
