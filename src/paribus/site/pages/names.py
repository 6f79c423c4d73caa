"""Names: how systems, decoders, machines and metrics are called in sentences, labels and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from paribus.site import words
from paribus.site.content import Run
from paribus.site.page import Site
from paribus.speed.metrics import metrics

METHODS = {
    "plain": "plain decoding",
    "ngram": "n-gram speculation",
    "mtp": "multi-token prediction",
    "eagle3": "EAGLE-3 speculation",
    "dflash": "DFlash speculation",
    "draft": "speculation with a draft model",
    "block-diffusion": "block diffusion",
}
"""Decoder methods in words."""

METRICS = {
    "throughput": "Standard tokens a second, all requests together",
    "throughput_whole_run": "Standard tokens a second, all requests together, whole run, rise and fall included",
    "output_speed": "Tokens a second of one answer, first wait included",
    "output_speed_standard": "Standard tokens a second of one answer, first wait included",
}
"""Titles of the metrics that charts and boards lead with (`time_to_k` has its own)."""

CPU_TRACK = (
    "The cpu track shows the method on any machine. Its model is small and loops on long answers; speculation gains on "
    "loops. Nothing here says how fast a larger model or a GPU is."
)


def decoder_words(method: str, decoder: str) -> str:
    """A decoder in a sentence: `plain decoding`, `n-gram speculation (ngram-simple-n4-m4)`."""
    name = METHODS.get(method, decoder)
    return name if decoder in (method, name) else f"{name} ({decoder})"


def run_words(run: Run) -> str:
    """A run's decoder in a sentence."""
    return decoder_words(run.decoder_method, str(run.row["decoder"]))


def labels(runs: Sequence[Run]) -> dict[str, str]:
    """The shortest label for each run that tells it from the others: decoder, then what else differs."""
    found: dict[str, str] = {}
    steps = (
        lambda r: str(r.row["decoder"]) + (", thinking" if r.row["think"] else ""),
        lambda r: str(r.row["precision"]),
        lambda r: str(r.row["engine"]),
        lambda r: str(r.row["machine"]),
        lambda r: str(r.row["scale"]),
        lambda r: words.date(r.row["started_at"]),
        lambda r: r.id,
    )
    for group in by_model(runs).values():
        parts = {run.id: [steps[0](run)] for run in group}
        for step in steps[1:]:
            again = Counter(tuple(p) for p in parts.values())
            unclear = [run for run in group if again[tuple(parts[run.id])] > 1]
            if len({step(run) for run in unclear}) > 1:
                for run in unclear:
                    parts[run.id].append(step(run))
        found.update({name: ", ".join(p) for name, p in parts.items()})
    return {name: label + (" · demo" if _run(runs, name).demo else "") for name, label in found.items()}


def _run(runs: Sequence[Run], name: str) -> Run:
    return next(run for run in runs if run.id == name)


def by_model(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs grouped by model, in order of names."""
    grouped: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda r: str(r.row["model"])):
        grouped.setdefault(str(run.row["model"]), []).append(run)
    return grouped


def metric_title(metric: str, unit: str = "") -> str:
    """What a metric measures, as a chart's title."""
    match = re.fullmatch(r"time_to_(\d+)", metric)
    if match:
        number = int(match.group(1))
        return f"Seconds until {words.count(number, 'token')} of text have arrived"
    match = re.fullmatch(r"speed_to_(\d+)", metric)
    if match:
        return f"Standard tokens a second until {match.group(1)} have arrived"
    if metric in METRICS:
        return METRICS[metric]
    known = metrics().get(metric)
    return (
        known.title if known is not None else words.opening(metric.replace("_", " ")) + (f" ({unit})" if unit else "")
    )


def card_name(site: Site, hardware: str, runs: Sequence[Run]) -> str:
    """A card in a sentence: what was observed when all runs agree, else the profile's title."""
    seen = {str(run.row["card"]) for run in runs if run.row["card"]}
    if len(seen) == 1:
        return seen.pop()
    profile = site.hardware.get(hardware)
    return profile.card.title if profile is not None else hardware


def hardware_title(site: Site, hardware: str) -> str:
    """A hardware profile in a heading."""
    profile = site.hardware.get(hardware)
    return f"{hardware}: {profile.card.title}" if profile is not None else hardware


def measure_title(site: Site, run: Run) -> str:
    """A run's scenario or task in words; a part of a task says so, as nothing of it meets the whole."""
    name = str(run.row["scenario_or_task"])
    task = site.tasks.get(name)
    title = task.title if task is not None else scenario_title(site, name)
    return f"{title} (a part of its items)" if run.summary.part else title


def scenario_title(site: Site, scenario: str) -> str:
    """A scenario in words."""
    found = site.scenarios.get(scenario) or site.catalog.scenarios.get(scenario)
    return found.title if found is not None else scenario
