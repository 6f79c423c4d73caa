"""Names of torchvision that Transformers looks up when it loads a model that could also read pictures.

torchvision's wheels want another torch than the CPU build's. Nothing here works on pictures: a function that is called
says so. Text never comes here.
"""

__version__ = "0.0"
