"""What the server counts, and the page that shows it in the Prometheus text format."""

from __future__ import annotations

import threading

COUNTERS = {
    "requests": "Requests answered or begun",
    "prompt_tokens": "Prompt tokens read",
    "cached_prompt_tokens": "Prompt tokens taken from a cache of earlier requests: this server has none",
    "generated_tokens": "Tokens delivered, the one that ends a sequence included",
    "forward_passes": "Forward passes of the model, all of them: prompt, every token or denoising step, every encoding",
    "denoising_steps": "Forward passes that denoised a canvas or block",
    "committed_tokens": "Tokens of whole canvases or blocks, up to the end of the sequence; those over a cap too",
    "canvases": "Canvases or blocks finished",
    "drafts": "Passes that checked a draft",
    "draft_tokens": "Tokens that the draft model proposed",
    "accepted_tokens": "Draft tokens that were accepted",
}
"""Counters by name; on the page they are `paribus_<name>_total`."""

GAUGES = {"requests_running": "Requests being answered", "requests_waiting": "Requests waiting for their turn"}
"""Gauges by name; on the page they are `paribus_<name>`."""


class Meters:
    """Counters and gauges, for several threads. Only those that the model's family counts are shown."""

    def __init__(self, counted: frozenset[str]) -> None:
        self._lock = threading.Lock()
        self._counters = {name: 0 for name in COUNTERS if name in counted}
        self._gauges = dict.fromkeys(GAUGES, 0)

    def add(self, **amounts: int) -> None:
        """Count up; what this family doesn't count is passed over."""
        with self._lock:
            for name, amount in amounts.items():
                if name in self._counters:
                    self._counters[name] += amount

    def move(self, gauge: str, by: int) -> None:
        """Change a gauge."""
        with self._lock:
            self._gauges[gauge] += by

    def value(self, name: str) -> int:
        """One counter or gauge now."""
        with self._lock:
            return self._counters[name] if name in self._counters else self._gauges[name]

    def page(self) -> str:
        """Everything, for `/metrics`."""
        with self._lock:
            rows = [(f"paribus_{name}_total", "counter", COUNTERS[name], n) for name, n in self._counters.items()]
            rows += [(f"paribus_{name}", "gauge", GAUGES[name], n) for name, n in self._gauges.items()]
        return "".join(f"# HELP {n} {about}\n# TYPE {n} {kind}\n{n} {value}\n" for n, kind, about, value in rows)
