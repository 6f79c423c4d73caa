"""Reading pictures: refused."""

from enum import Enum


class ImageReadMode(Enum):
    """The name that is looked up."""

    RGB = "RGB"


def decode_image(*_args, **_kwargs):
    """Refused."""
    raise NotImplementedError("this stand-in for torchvision reads no pictures")
