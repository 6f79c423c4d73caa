"""Scaling pictures: refused."""

from torchvision.transforms import InterpolationMode

__all__ = ["InterpolationMode", "pil_to_tensor"]


def pil_to_tensor(*_args, **_kwargs):
    """Refused."""
    raise NotImplementedError("this stand-in for torchvision scales no pictures")
