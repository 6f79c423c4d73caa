"""Metrics: one small file each, found by name. Their docstrings are the site's method page."""

from paribus.speed.metrics.registry import Metric, metric, metrics

__all__ = ["Metric", "metric", "metrics"]
