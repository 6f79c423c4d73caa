"""Transformers behind a small server of our own (`envs/transformers/server.py`), for diffusion and research models.

What the settings mean: `envs/transformers/README.md`. It answers one request at a time and says so (`admitted`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from paribus.catalog import System
from paribus.conditions import UsageError
from paribus.engines.base import COUNTERS, GAUGES, Adapter, Compilation, Launch, Running, refuse_unknown
from paribus.engines.bounds import RATE, SWITCH, Bound, few
from paribus.engines.deciding import OF_TORCH, one_of, own
from paribus.engines.local import ask_json
from paribus.engines.thinking import by_template
from paribus.machine.cpu import usable_cores

_LAUNCH: dict[str, str] = {
    "context_length": "context",
    "family": "family",
    "device": "device",
    "dtype": "dtype",
    "threads": "threads",
    "attn_implementation": "attention",
    "cache_implementation": "cache",
    "compile": "compile",
}
"""From launch settings of the catalog to settings of the server."""

_CACHES = ("dynamic", "static", "offloaded", "offloaded_static")
_DECIDING = {
    "dtype": own("dtype"),
    "cache_implementation": one_of(*_CACHES, instead=f"the cache is kept as it is: {', '.join(_CACHES)}"),
}

_MARKS = ("reasoning_start", "reasoning_end")
_PASSED_OVER = ("slots", "prefix_caching", *_MARKS)
_ASSISTED = ("draft", "mtp")
"""Methods that Transformers runs with an assistant model."""

_DIFFUSION_GEMMA = frozenset({"max_denoising_steps", "t_min", "t_max", "stability_threshold", "confidence_threshold"})
_KNOBS: dict[str, frozenset[str]] = {
    "diffusion-gemma": _DIFFUSION_GEMMA | {"entropy_bound", "canvas_length", "sampler"},
    "masked-diffusion": frozenset(
        {"block_length", "steps_per_block", "threshold", "remasking", "shift_logits", "mask_token_id"}
    ),
}
"""Denoising settings by family: lossy ones, part of the answer class."""

_SAMPLING = {
    "autoregressive": frozenset({"temperature", "top_p", "top_k", "min_p", "seed"}),
    "diffusion-gemma": frozenset({"seed"}),
    "masked-diffusion": frozenset({"temperature", "seed"}),
}
"""Sampling fields that a request may carry, by family. DiffusionGemma's temperature is a schedule of its own."""


_COMPILED = re.compile(r"^compiled (\d+) graphs$", re.MULTILINE)


_BOUNDS = {
    "threads": Bound(0, 4096, whole=True),
    "compile": SWITCH,
    "threshold": RATE,
    "confidence_threshold": RATE,
    **few("num_assistant_tokens", "block_length", "steps_per_block", "canvas_length", "max_denoising_steps"),
}


class Transformers(Adapter):
    """The adapter; each of its environments is an engine of its own."""

    metrics = {f"paribus_{name}_total": name for name in COUNTERS} | {
        f"paribus_requests_{name}": name for name in GAUGES
    }

    deciding = _DECIDING
    bounds = _BOUNDS
    variables = OF_TORCH

    def __init__(self, name: str) -> None:
        self.name = name

    def sampling_fields(self, system: System) -> frozenset[str]:
        """By family; where a diffusion model's file names none, what all diffusion families take."""
        if system.decoder.method != "block-diffusion":
            return _SAMPLING["autoregressive"]
        return _SAMPLING.get(str(system.use.launch.get("family")), frozenset({"seed"}))

    def command(self, launch: Launch) -> list[str]:
        """The server with its settings as JSON."""
        given, system = launch.settings, launch.system
        refuse_unknown(self.name, given, (*_LAUNCH, *_PASSED_OVER), "launch setting")
        if given.get("prefix_caching"):
            raise UsageError(f"{system.name}: {self.name} keeps no cache between requests, so it has no prefix caching")
        wanted: dict[str, Any] = {
            "model": str(launch.weights),
            "alias": system.name.model,
            "host": launch.host,
            "port": launch.port,
            "context": system.context_of(given),
            "threads": max(1, usable_cores() - 1),
            **{theirs: given[ours] for ours, theirs in _LAUNCH.items() if given.get(ours)},
            **_marks(self.name, given),
            **_decoder(self.name, launch),
        }
        if system.use.trust_remote_code:
            wanted["trust_remote_code"] = True
        script = launch.root / "envs" / "transformers" / "server.py"
        return [str(launch.python), "-u", str(script), json.dumps(wanted, sort_keys=True)]

    def environment(self, launch: Launch) -> dict[str, str]:  # noqa: ARG002 (the protocol's signature)
        """Nothing is drawn over the log, and a lack of memory isn't made worse by fragments."""
        return {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}

    def compilations(self, log_text: str) -> list[Compilation]:
        """The server says after each answer how many graphs torch compiled for it."""
        return [Compilation(f"{graphs} graphs") for graphs in _COMPILED.findall(log_text)]

    def rendered(self, running: Running) -> str | None:
        """By `/apply-template`."""
        return by_template(running)

    def observe(self, running: Running) -> dict[str, Any]:
        """Everything from `/props`, and the rendered prompt with the system's switch for thinking."""
        props, system = ask_json(f"{running.base}/props"), running.launch.system
        versions = props["versions"]
        missing = sorted(self.sampling_fields(system) - set(props["sampling_fields"]))
        if missing:
            raise ValueError(f"it takes no {', '.join(missing)}, which its family {props['family']} should")
        settings = {"context_length": props["context"], "family": props["family"], "dtype": props["dtype"]}
        settings |= {"compile": props["compile"], "cache_implementation": props["cache"], **props["denoising"]}
        if props["draft_tokens"]:
            settings["num_assistant_tokens"] = props["draft_tokens"]
        if running.launch.settings.get("dtype") in (None, "auto"):
            del settings["dtype"]
        return {
            "engine_version": f"transformers {versions['transformers']}, torch {versions['torch']}, {props['server']}",
            "admitted": int(props["admitted"]),
            "context_per_slot": int(props["context"]),
            "settings": settings,
            "sampling_defaults": props["sampling_defaults"],
            "attention_backend": props["attention"],
            "weights_format": props["dtype"],
            "dtype": props["dtype"],
            # Of masked diffusion every pass reads the whole text again; the others' cache has the model's type.
            "kv_cache": "none" if props["family"] == "masked-diffusion" else props["dtype"],
            "rendered_prompt": self.rendered(running),
        } | ({"research_implementation": True} if props["research_implementation"] else {})


def _decoder(engine: str, launch: Launch) -> dict[str, Any]:
    """The decoder as the server wants it."""
    system, decoder = launch.system, launch.system.decoder
    if decoder.method == "block-diffusion":
        refuse_unknown(engine, decoder.parameters, (), "parameter of block diffusion")
        family = str(launch.settings.get("family", ""))
        known = _KNOBS.get(family) or frozenset().union(*_KNOBS.values())
        refuse_unknown(engine, decoder.lossy, known, "denoising setting")
        return {"denoising": dict(decoder.lossy)}
    if decoder.lossy:
        raise UsageError(f"{system.name}: {engine} has lossy settings for diffusion models only")
    if decoder.method == "plain":
        refuse_unknown(engine, decoder.parameters, (), "parameter of plain decoding")
        return {}
    if decoder.method not in _ASSISTED:
        raise UsageError(
            f"{system.name}: {engine} runs plain decoding, block diffusion and drafts of an assistant model "
            f"({', '.join(_ASSISTED)}); the catalog says {decoder.method}"
        )
    refuse_unknown(engine, decoder.parameters, ("num_assistant_tokens",), f"parameter of {decoder.method}")
    if decoder.method == "mtp" and launch.drafter is None:
        raise UsageError(f"{system.name}: mtp needs the weights of an assistant model (`drafter`)")
    # Without weights of its own, the model is its own draft: nothing is gained, but the path is tried.
    drafter = launch.drafter or launch.weights
    return {"drafter": str(drafter), "draft_tokens": int(decoder.parameters.get("num_assistant_tokens", 5))}


def _marks(engine: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The tokens around a model's thinking."""
    marks = [given[name] for name in _MARKS if given.get(name)]
    if len(marks) == 1:
        raise UsageError(f"{engine} needs both {' and '.join(_MARKS)}, or neither")
    return {"reasoning": marks} if marks else {}


ENGINE = Transformers("transformers")
