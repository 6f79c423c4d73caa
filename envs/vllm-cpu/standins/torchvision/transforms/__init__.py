"""Ways of scaling pictures, by name only."""

from enum import Enum


class InterpolationMode(Enum):
    """torchvision's names."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"
