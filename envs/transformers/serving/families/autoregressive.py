"""Token by token, with Transformers' own `generate`; with an assistant model, drafts that the model checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.generation.streamers import BaseStreamer

from serving.families.loading import load_model
from serving.run import Run
from serving.settings import Settings

_PLAIN = frozenset({"requests", "prompt_tokens", "cached_prompt_tokens", "generated_tokens", "forward_passes"})
_DRAFTING = frozenset({"drafts", "draft_tokens", "accepted_tokens"})


class _Commits(BaseStreamer):
    """Hands each token, or each accepted draft, to the run; what comes first is the prompt."""

    def __init__(self, run: Run) -> None:
        self._run, self._prompt = run, True

    def put(self, value: torch.Tensor) -> None:
        if self._prompt:
            self._prompt = False
            return
        self._run.commit(value.flatten().tolist())

    def end(self) -> None:
        pass


@dataclass
class Autoregressive:
    """A causal language model."""

    model: Any
    drafter: Any
    settings: Settings
    name = "autoregressive"
    knobs: frozenset[str] = frozenset()
    fields = frozenset({"temperature", "top_p", "top_k", "min_p", "seed"})
    research = False

    def __post_init__(self) -> None:
        self.research = self.settings.trust_remote_code
        self.counted = _PLAIN | (_DRAFTING if self.drafter is not None else frozenset())

    @classmethod
    def load(cls, config: Any, settings: Settings, device: str) -> Autoregressive:  # noqa: ARG003 (a family's signature)
        """Load the model, and its assistant."""
        model = load_model(AutoModelForCausalLM, settings.model, settings, device)
        _only_ends(model)
        drafter = load_model(AutoModelForCausalLM, settings.drafter, settings, device) if settings.drafter else None
        if drafter is not None:
            _only_ends(drafter)
            drafter.generation_config.num_assistant_tokens = settings.draft_tokens or 5
            drafter.generation_config.num_assistant_tokens_schedule = "constant"
            # Transformers ends a draft early where the drafter is unsure; here a draft is as long as it is said to be.
            drafter.generation_config.assistant_confidence_threshold = 0.0
        return cls(model, drafter, settings)

    @property
    def defaults(self) -> dict[str, Any]:
        """The whole distribution, as it is."""
        return {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}

    @property
    def denoising(self) -> dict[str, Any]:
        """None."""
        return {}

    def generate(self, run: Run) -> None:
        """One answer."""
        sampling = {**self.defaults, **run.sampling}
        if (seed := sampling.pop("seed", None)) is not None:
            torch.manual_seed(int(seed))
        greedy = not sampling["temperature"]
        chosen = {"do_sample": False} if greedy else {"do_sample": True, **sampling}
        config = GenerationConfig(max_new_tokens=run.most, **chosen)
        if self.settings.cache != "dynamic":
            config.cache_implementation = self.settings.cache
        config.disable_compile = not self.settings.compile
        ids = torch.tensor([run.prompt], device=self.model.device)
        with _counting(self.model, self.drafter, run):
            self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=config,
                streamer=_Commits(run),
                **({"assistant_model": self.drafter} if self.drafter is not None else {}),
            )


def _only_ends(model: Any) -> None:
    """Keep of the checkpoint's generation settings just how a sequence ends: sampling is what a request says."""
    given = model.generation_config
    ends = {name: getattr(given, name, None) for name in ("eos_token_id", "pad_token_id", "bos_token_id")}
    if ends["pad_token_id"] is None:
        end = ends["eos_token_id"]
        ends["pad_token_id"] = end[0] if isinstance(end, list) else end
    model.generation_config = GenerationConfig(**ends)


class _counting:  # noqa: N801 (a context manager)
    """Counts passes with hooks: one of the model checks a draft and adds a token; one of the drafter proposes one."""

    def __init__(self, model: Any, drafter: Any, run: Run) -> None:
        self._model, self._drafter, self._run = model, drafter, run
        self._passes, self._hooks = 0, []

    def __enter__(self) -> None:
        self._hooks.append(self._model.register_forward_pre_hook(self._pass))
        if self._drafter is not None:
            self._hooks.append(self._drafter.register_forward_pre_hook(self._draft))

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        if self._drafter is not None:
            accepted = max(0, len(self._run.tokens) - self._passes)
            self._run.meters.add(drafts=self._passes, accepted_tokens=accepted)

    def _pass(self, *_: object) -> None:
        self._passes += 1
        self._run.passed(other=1)

    def _draft(self, *_: object) -> None:
        self._run.meters.add(draft_tokens=1)
