"""llama.cpp's own server: from the `xllamacpp` wheel through `envs/llamacpp/serve.py`, or a `llama-server` on the path.

Every flag of the program is in its README, `tools/server/README.md` of <https://github.com/ggml-org/llama.cpp> (read at
commit 00dc8057ab28), and in `common/arg.cpp` (read in build 11434); the wheel has the same parameters by the names of
llama.cpp's `common_params`. How drafts work: `docs/speculative.md` there; heads for several tokens (MTP): pull requests
22673 (inside the model's file) and 23398 (a file of their own).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from paribus.catalog import NEUTRAL, Scalar, System
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.base import Adapter, How, Launch, Running, refuse_unknown
from paribus.engines.bounds import RATE, SWITCH, Bound, counts, few, words
from paribus.engines.counters import LLAMACPP
from paribus.engines.deciding import own
from paribus.engines.local import ask_json
from paribus.engines.scoring import Call, token_ids
from paribus.engines.thinking import by_template
from paribus.machine.cpu import usable_cores

_LAUNCH: dict[str, Scalar] = {
    "kv_unified": False,
    "poll": 50,
    "cache_prompt": False,
    "threads": 0,
    "batch": 2048,
    "ubatch": 512,
}
"""Launch settings and what stands in for one that isn't given: the engine's own default, but for two.

`threads` 0: all usable cores but one, which is the load generator's; both of two, of which that takes 2% of one.
llama.cpp's threads wait for each other: where one has to share its core all of them slow down. `cache_prompt`: the
engine's is on; here `prefix_caching` decides it, which only a measure sets, and a file may say no more than false."""

_UNSAID = 4096
"""The longest context of a model whose file may leave `context_per_slot` out."""

_SAMPLING = {"temperature": "temp", "repetition_penalty": "repeat_penalty"}
"""Sampling settings that llama.cpp's flags call by another name than ours."""

_OPTIONS = ("n_gpu_layers", "flash_attn", "cache_type_k", "cache_type_v")
"""Optional launch settings that are handed on as they are: layers on the card (a number, `auto` or `all`), flash
attention, types of the cache."""

_DECIDING = {"cache_type_k": own("kv_cache"), "cache_type_v": own("kv_cache")}
_CACHE = re.compile(
    r"^cache of keys GGML_TYPE_(?P<k>\w+), of values GGML_TYPE_(?P<v>\w+)$"
    r"|llama_kv_cache.*?\bK \((?P<k2>\w+)\):.*?\bV \((?P<v2>\w+)\):",
    re.MULTILINE,
)
"""Types of the cache: as our launcher prints them, and as the program logs them (`src/llama-kv-cache.cpp`)."""

_PASSED_OVER = ("slots", "prefix_caching")

_MAP = ("size_n", "size_m", "min_hits")
_NGRAMS: dict[str, tuple[str, ...]] = {
    "ngram-simple": _MAP,
    "ngram-map-k": _MAP,
    "ngram-map-k4v": _MAP,
    "ngram-mod": ("n_match", "n_min", "n_max"),
    "ngram-cache": (),
}
"""n-gram methods and their parameters."""

_DRAFTS = {"draft": "draft-simple", "mtp": "draft-mtp", "eagle3": "draft-eagle3", "dflash": "draft-dflash"}
"""llama.cpp's type of drafting by method of the catalog."""

_DRAFT = ("n_max", "n_min", "p_min", "p_split", "sampling")
"""Parameters of drafts by a model: tokens, certainty, and whether the draft is its likeliest token or sampled."""

_DRAFT_SAMPLING = {"greedy": "strict", "probabilistic": "rejection"}
"""How drafts are checked: a greedy one must be the very token that the target samples, a sampled one is accepted by
rejection sampling. The catalog's `acceptance` must say the same."""


_BOUNDS = {
    "poll": Bound(0, 100, whole=True),
    "threads": Bound(0, 4096, whole=True),
    "n_gpu_layers": Bound(-1, 4096, whole=True, words=("auto", "all")),
    "flash_attn": words("auto", "on", "off"),
    "kv_unified": SWITCH,
    "p_min": RATE,
    "p_split": RATE,
    "n_min": Bound(0, 4096, whole=True),
    **counts("batch", "ubatch"),
    **few("n_max", "n_match", *_MAP),
}


class LlamaCpp(Adapter):
    """The adapter."""

    name = "llamacpp"
    ways: tuple[How, ...] = ("env", "binary")
    programs = frozenset({"llama-server"})
    metrics = LLAMACPP
    bounds = _BOUNDS
    deciding = _DECIDING
    reads = ("LLAMA_", "GGML_")
    local = frozenset({"GGML_VK_VISIBLE_DEVICES"})  # which card, as CUDA_VISIBLE_DEVICES (ggml-vulkan.cpp)
    # Without repetition_penalty, whose name in llama.cpp is another (`repeat_penalty`) and would be passed over.
    fields = frozenset({"temperature", "top_p", "top_k", "min_p", "presence_penalty", "seed"})

    def command(self, launch: Launch) -> list[str]:
        """The launcher with its settings as JSON; of a program on the path, the flags that say the same."""
        wanted = _wanted(launch)
        if launch.how == "binary":
            return [str(launch.program), *_flags(wanted)]
        script = launch.root / "envs" / "llamacpp" / "serve.py"
        return [str(launch.python), "-u", str(script), json.dumps(wanted, sort_keys=True)]

    def rendered(self, running: Running) -> str | None:
        """By `/apply-template`."""
        return by_template(running)

    def observe(self, running: Running) -> dict[str, Any]:
        """Version, slots, context and sampling defaults from `/props`, the rendered prompt from `/apply-template`.

        Not its speculation: `/props` names that of a request's defaults ("none"), not what the server was started
        with. Whether it drafts is told by its counters.
        """
        props = ask_json(f"{running.base}/props")
        defaults = props["default_generation_settings"]
        _are_neutral(defaults["params"], running.launch.system)
        wheel = re.search(r"^xllamacpp (\S+)$", running.log, re.MULTILINE)
        context, slots = int(defaults["n_ctx"]), int(props["total_slots"])
        return {
            "engine_version": _version(wheel[1] if wheel else None, str(props.get("build_info", ""))),
            "admitted": slots,
            "context_per_slot": context,
            "settings": {"context_per_slot": context, "slots": slots},
            "sampling_defaults": _sampling_defaults(defaults["params"]),
            "weights_format": str(props.get("model_ftype", "not stated")),
            "rendered_prompt": self.rendered(running),
            "kv_cache": _cache(running.log),
        }

    def token_count(self, model: str, text: str) -> Call[int]:  # noqa: ARG002 (the protocol's signature)
        """`/tokenize`, which adds no special tokens unless it is told to."""
        return Call("/tokenize", {"content": text, "add_special": False}, lambda reply: len(token_ids(reply["tokens"])))


def _wanted(launch: Launch) -> dict[str, Any]:
    """Everything that decides how the server runs, in the words of `envs/llamacpp/serve.py`."""
    settings = _settings(launch.settings)
    if settings["cache_prompt"] is not False:
        raise UsageError(
            f"{launch.system.name}: cache_prompt: {settings['cache_prompt']} is not the file's to set: whether "
            "prompts are kept is the measure's affair (`prefix_caching`)"
        )
    return {
        "model": str(launch.weights),
        "alias": launch.system.name.model,
        "host": launch.host,
        "port": launch.port,
        "slots": launch.slots,
        "context_per_slot": _context(launch),
        "threads": settings["threads"] or _threads(usable_cores()),
        "batch": settings["batch"],
        "ubatch": settings["ubatch"],
        "poll": settings["poll"],
        "kv_unified": settings["kv_unified"],
        "cache_prompt": bool(launch.settings.get("prefix_caching", False)),
        "options": {name: launch.settings[name] for name in _OPTIONS if name in launch.settings},
        # What a card leaves out has no effect, as with other engines: llama.cpp's own defaults (temperature 0.8,
        # top_k 40, top_p 0.95, min_p 0.05), and any in the weights' file, are nobody's choice for this model.
        "sampling": {_SAMPLING.get(name, name): value for name, value in NEUTRAL.items()},
        "speculative": _speculative(launch),
    }


def _context(launch: Launch) -> int:
    """Tokens of each slot. Memory for all of them is taken at the start, so that nobody may leave a long one unsaid."""
    system, given = launch.system, launch.settings.get("context_per_slot")
    whole = system.model.context or _UNSAID
    if given is None and whole > _UNSAID:
        raise UsageError(
            f"{system.name}: llamacpp needs the launch setting context_per_slot, since the cache of every slot is made "
            f"at the start: without one the plan counts on the model's whole context of {whole:,} tokens"
        )
    return whole if given is None else int(given)


def _threads(cores: int) -> int:
    """Threads of the engine where none are declared."""
    return cores if cores <= 2 else cores - 1


def _flags(wanted: Mapping[str, Any]) -> Iterator[str]:
    """The same settings as flags of `llama-server`."""
    pairs: dict[str, Any] = {
        "--model": wanted["model"],
        "--alias": wanted["alias"],
        "--host": wanted["host"],
        "--port": wanted["port"],
        "--parallel": wanted["slots"],
        # Without a unified cache the context is divided evenly among the slots.
        "--ctx-size": wanted["context_per_slot"] * wanted["slots"],
        "--threads": wanted["threads"],
        "--batch-size": wanted["batch"],
        "--ubatch-size": wanted["ubatch"],
        "--poll": wanted["poll"],
        "--cache-ram": 0,
        "--fit": "off",
        "--log-colors": "off",
        **{f"--{name.replace('_', '-')}": value for name, value in wanted["options"].items()},
        **{f"--{name.replace('_', '-')}": value for name, value in wanted["sampling"].items()},
    }
    for flag, value in pairs.items():
        yield from (flag, str(value))
    yield "--kv-unified" if wanted["kv_unified"] else "--no-kv-unified"
    yield "--cache-prompt" if wanted["cache_prompt"] else "--no-cache-prompt"
    yield from ("--metrics", "--no-webui", "--offline")
    yield from _drafting_flags(wanted["speculative"])


def _drafting_flags(speculative: Mapping[str, Any]) -> Iterator[str]:
    if not speculative:
        return
    kind = speculative["type"]
    yield from ("--spec-type", kind)
    for name, value in speculative.items():
        if name == "drafter":
            yield from ("--spec-draft-model", str(value))
        elif name != "type":
            group = kind if kind in _NGRAMS else "draft"
            yield from (f"--spec-{group}-{name.replace('_', '-')}", str(value))


def _cache(log: str) -> str | None:
    """The type of keys and values; both where they differ; None where the log doesn't tell."""
    found = _CACHE.search(log)
    if found is None:
        return None
    keys, values = (found[name] or found[f"{name}2"] for name in "kv")
    return keys if keys == values else f"{keys}/{values}"


def _version(wheel: str | None, build: str) -> str:
    """The wheel's version, and llama.cpp's build where it knows its own (`b0-unknown`: it doesn't)."""
    known = build if build and "unknown" not in build else "not stated"
    if wheel is None:
        return f"llama.cpp {known}"
    return f"xllamacpp {wheel}" + (f" (llama.cpp build {known})" if known == build else "")


def _settings(given: Mapping[str, Scalar]) -> dict[str, Any]:
    known = ("context_per_slot", *_LAUNCH, *_OPTIONS, *_PASSED_OVER)
    refuse_unknown("llamacpp", given, known, "launch setting")
    return {name: given.get(name, default) for name, default in _LAUNCH.items()}


def _speculative(launch: Launch) -> dict[str, Scalar]:
    """The decoder as the launcher wants it; {} for plain decoding."""
    system, decoder = launch.system, launch.system.decoder
    if decoder.lossy:
        raise UsageError(f"{system.name}: llamacpp has no lossy decoding settings")
    if decoder.method == "plain":
        refuse_unknown("llamacpp", decoder.parameters, (), "parameter of plain decoding")
        return {}
    if decoder.method in _DRAFTS:
        return _drafting(launch)
    kind = decoder.parameters.get("type")
    if decoder.method != "ngram" or kind not in _NGRAMS:
        raise UsageError(
            f"{system.name}: the adapter of llamacpp runs plain decoding, drafts by a model ({', '.join(_DRAFTS)}) and "
            f"the n-gram types {', '.join(_NGRAMS)}; the catalog says {decoder.method} {kind or 'without a type'}"
        )
    refuse_unknown("llamacpp", decoder.parameters, ("type", *_NGRAMS[str(kind)]), f"parameter of {kind}")
    return dict(decoder.parameters)


def _drafting(launch: Launch) -> dict[str, Scalar]:
    """Drafts by a model: its own weights, else heads inside the target's file (mtp) or the target itself (draft)."""
    system, decoder = launch.system, launch.system.decoder
    refuse_unknown("llamacpp", decoder.parameters, _DRAFT, f"parameter of {decoder.method}")
    sampling = decoder.parameters.get("sampling", "greedy")
    if sampling not in _DRAFT_SAMPLING:
        raise UsageError(f"{system.name}: sampling of drafts is {' or '.join(_DRAFT_SAMPLING)}, not {sampling!r}")
    if decoder.acceptance != _DRAFT_SAMPLING[str(sampling)]:
        raise UsageError(
            f"{system.name}: {sampling} drafts are checked by {_DRAFT_SAMPLING[str(sampling)]} acceptance, and the "
            f"catalog says {decoder.acceptance}"
        )
    wanted: dict[str, Scalar] = {"type": _DRAFTS[decoder.method], **decoder.parameters}
    if launch.drafter is not None:
        wanted["drafter"] = str(launch.drafter)
    elif decoder.method == "draft":
        wanted["drafter"] = str(launch.weights)
    elif decoder.method != "mtp":
        raise UsageError(f"{system.name}: {decoder.method} needs the weights of a draft model (`drafter`)")
    return wanted


_IN_PROPS = {_SAMPLING[name] if name == "repetition_penalty" else name: value for name, value in NEUTRAL.items()}
"""The neutral values by their names in `/props`."""


def _are_neutral(params: Mapping[str, Any], system: System) -> None:
    """Raise `EnvironmentFault` where the server's own sampling isn't what it was started with."""
    other = {name: params[name] for name, value in _IN_PROPS.items() if abs(params.get(name, value) - value) > 1e-6}
    if other:
        said = ", ".join(f"{name} {value:g}" for name, value in other.items())
        raise EnvironmentFault(
            f"{system.name}: llama.cpp's server has sampling of its own ({said}) where a request says nothing, though "
            "it was started with none: this build takes it from elsewhere, and its answers would be another model's"
        )


def _sampling_defaults(params: Mapping[str, Any]) -> dict[str, Any]:
    """What the server does where a request says nothing; floats rounded from single precision."""
    names = (*_IN_PROPS, "typical_p", "repeat_last_n", "samplers")
    return {
        name: round(params[name], 6) if isinstance(params[name], float) else params[name]
        for name in names
        if name in params
    }


ENGINE = LlamaCpp()
