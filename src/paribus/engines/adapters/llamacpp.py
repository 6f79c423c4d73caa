"""llama.cpp's own server, from the `xllamacpp` wheel through `envs/llamacpp/serve.py`.

What the settings mean: <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md> and
<https://github.com/ggml-org/llama.cpp/blob/master/docs/speculative.md>.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from paribus.catalog import Scalar, System
from paribus.conditions import UsageError
from paribus.engines.base import Adapter, Launch, Running
from paribus.engines.counters import LLAMACPP
from paribus.engines.local import NoAnswer, ask_json
from paribus.machine.cpu import usable_cores

_LAUNCH: dict[str, Scalar] = {
    "context_per_slot": 4096,
    "kv_unified": False,
    "poll": 50,
    "cache_prompt": False,
    "threads": 0,
    "batch": 2048,
    "ubatch": 512,
}
"""Launch settings and what stands in for one that isn't given: the engine's own default, but for two.

`threads` 0: all usable cores but one, which is the load generator's. llama.cpp's threads wait for each other: where one
has to share its core all of them slow down (by half at sixteen requests on two cores). `cache_prompt`: the engine's is
on, while a declared condition says off unless `prefix_caching` is set."""

_SAMPLING_DEFAULTS = ("top_k", "min_p")
"""Optional launch settings: what the server uses where a request says nothing."""

_PASSED_OVER = ("slots", "prefix_caching")

_MAP = ("size_n", "size_m", "min_hits")
_DECODERS: dict[str, tuple[str, ...]] = {
    "ngram-simple": _MAP,
    "ngram-map-k": _MAP,
    "ngram-map-k4v": _MAP,
    "ngram-mod": ("n_match", "n_min", "n_max"),
    "ngram-cache": (),
}
"""n-gram methods and their parameters."""


class LlamaCpp(Adapter):
    """The adapter."""

    name = "llamacpp"
    metrics = LLAMACPP
    decisive = frozenset({"context_per_slot"})

    def command(self, launch: Launch) -> list[str]:
        """The launcher with its settings as JSON."""
        settings = _settings(launch.settings)
        caching = bool(launch.settings.get("prefix_caching", settings["cache_prompt"]))
        wanted = {
            "model": str(launch.weights),
            "alias": launch.system.name.model,
            "port": launch.port,
            "slots": launch.slots,
            "context_per_slot": settings["context_per_slot"],
            "threads": settings["threads"] or max(1, usable_cores() - 1),
            "batch": settings["batch"],
            "ubatch": settings["ubatch"],
            "poll": settings["poll"],
            "kv_unified": settings["kv_unified"],
            "cache_prompt": caching,
            "sampling": {name: launch.settings[name] for name in _SAMPLING_DEFAULTS if name in launch.settings},
            "speculative": _speculative(launch.system),
        }
        script = launch.root / "envs" / "llamacpp" / "serve.py"
        return [str(launch.python), "-u", str(script), json.dumps(wanted, sort_keys=True)]

    def observe(self, running: Running) -> dict[str, Any]:
        """Version, slots, context and sampling defaults from `/props`, the rendered prompt from `/apply-template`.

        Not its speculation: `/props` names that of a request's defaults ("none"), not what the server was started
        with. Whether it drafts is told by its counters.
        """
        props = ask_json(f"{running.base}/props")
        defaults = props["default_generation_settings"]
        wheel = re.search(r"^xllamacpp (\S+)$", running.log, re.MULTILINE)
        return {
            "engine_version": _version(wheel[1] if wheel else "not stated", str(props.get("build_info", ""))),
            "admitted": int(props["total_slots"]),
            "context_per_slot": int(defaults["n_ctx"]),
            "settings": {"context_per_slot": int(defaults["n_ctx"])},
            "sampling_defaults": _sampling_defaults(defaults["params"]),
            "weights_format": str(props.get("model_ftype", "not stated")),
            "rendered_prompt": _rendered(running.base),
        }


def _version(wheel: str, build: str) -> str:
    """The wheel's version, and llama.cpp's build where it knows its own (`b0-unknown`: it doesn't)."""
    return f"xllamacpp {wheel}" + (f" (llama.cpp build {build})" if build and "unknown" not in build else "")


def _settings(given: Mapping[str, Scalar]) -> dict[str, Any]:
    known = (*_LAUNCH, *_SAMPLING_DEFAULTS, *_PASSED_OVER)
    _refuse_unknown(given, known, "launch setting")
    return {name: given.get(name, default) for name, default in _LAUNCH.items()}


def _refuse_unknown(given: Mapping[str, Scalar], known: tuple[str, ...], what: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise UsageError(
            f"llamacpp knows no {what} {', '.join(unknown)}; known: {', '.join(sorted(known)) or 'none at all'}"
        )


def _speculative(system: System) -> dict[str, Scalar]:
    """The decoder as the launcher wants it; {} for plain decoding."""
    decoder = system.decoder
    if decoder.lossy:
        raise UsageError(f"{system.name}: llamacpp has no lossy decoding settings")
    if decoder.method == "plain":
        _refuse_unknown(decoder.parameters, (), "parameter of plain decoding")
        return {}
    kind = decoder.parameters.get("type")
    if decoder.method != "ngram" or kind not in _DECODERS:
        raise UsageError(
            f"{system.name}: the adapter of llamacpp runs plain decoding and the n-gram types "
            f"{', '.join(_DECODERS)}; the catalog says {decoder.method} {kind or 'without a type'}"
        )
    _refuse_unknown(decoder.parameters, ("type", *_DECODERS[str(kind)]), f"parameter of {kind}")
    return dict(decoder.parameters)


def _sampling_defaults(params: Mapping[str, Any]) -> dict[str, Any]:
    """What the server does where a request says nothing; floats rounded from single precision."""
    names = ("temperature", "top_k", "top_p", "min_p", "typical_p", "repeat_penalty", "samplers")
    return {
        name: round(params[name], 6) if isinstance(params[name], float) else params[name]
        for name in names
        if name in params
    }


def _rendered(base: str) -> str | None:
    """How the chat template renders one short message: shows the system prompt and the switch for thinking."""
    try:
        answer = ask_json(f"{base}/apply-template", {"messages": [{"role": "user", "content": "hello"}]})
    except NoAnswer:
        return None
    return str(answer.get("prompt"))[:2000]


ENGINE = LlamaCpp()
