"""Paribus: how fast language models are, all else being equal."""

__version__ = "0.1.0"
