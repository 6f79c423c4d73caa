"""The second version of the same names."""

from torchvision.transforms.functional import InterpolationMode, pil_to_tensor

__all__ = ["InterpolationMode", "pil_to_tensor"]
