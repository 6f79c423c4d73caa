"""The loaded model with its tokenizer: prompts rendered, requests answered one after the other."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers

from serving.asked import Asked, Prompt
from serving.families import Family, load_family
from serving.families.loading import ids_of
from serving.meters import Meters
from serving.run import Halt, Run
from serving.settings import Settings, Unfit, code_hash
from serving.text import Piece, Teller

ADMITTED = 1
"""Requests answered at once. The loops of these models are for one sequence; others wait for their turn."""


@dataclass
class Model:
    """What is served."""

    settings: Settings
    family: Family
    tokenizer: Any
    meters: Meters
    device: str
    ends: frozenset[int]
    marks: tuple[int, int] | None
    graphs: int = 0
    """Graphs that torch has compiled so far, where it is to compile."""
    reading: threading.Lock = field(default_factory=threading.Lock)
    """Held while a prompt is tokenized: connections have threads of their own, and a tokenizer is for one."""

    @classmethod
    def load(cls, settings: Settings) -> Model:
        """Load weights and tokenizer from the model's folder. Raises `Unfit`, and what Transformers raises."""
        torch.set_num_threads(settings.threads)
        device = _device(settings.device)
        trust = {"local_files_only": True, "trust_remote_code": settings.trust_remote_code}
        config = transformers.AutoConfig.from_pretrained(settings.model, **trust)
        tokenizer = transformers.AutoTokenizer.from_pretrained(settings.model, **trust)
        family = load_family(config, settings, device)
        generation = getattr(family.model, "generation_config", None)
        ends = ids_of(getattr(generation, "eos_token_id", None)) | ids_of(tokenizer.eos_token_id)
        return cls(settings, family, tokenizer, Meters(family.counted), device, ends, _marks(settings, tokenizer))

    def render(self, asked: Asked) -> str:
        """The prompt's text: a chat through the model's template, a completion as it is."""
        if asked.messages is None:
            return asked.prompt or ""
        if not self.tokenizer.chat_template:
            raise Unfit("this model has no chat template: use /v1/completions")
        try:
            return str(
                self.tokenizer.apply_chat_template(
                    asked.messages, tools=asked.tools, tokenize=False, add_generation_prompt=True, **asked.template
                )
            )
        except Exception as error:  # a template is a program of the model's authors, and may raise anything
            raise Unfit(f"the chat template refuses these messages: {error}") from error

    def prompt(self, asked: Asked) -> Prompt:
        """The tokens of a request, and how many the answer may have."""
        with self.reading:
            tokens = self.tokenizer(self.render(asked), add_special_tokens=not asked.chat)["input_ids"]
        room = self.settings.context - len(tokens)
        if room < 1:
            raise Unfit(f"the prompt has {len(tokens)} tokens, the context holds {self.settings.context}")
        return Prompt(tokens, min(room, asked.most or room))

    def answer(self, asked: Asked, prompt: Prompt, tell: Callable[[Piece, int], None], gone: Callable[[], bool]) -> Run:
        """Answer a request on this thread; returns the finished run."""
        self.meters.add(requests=1, prompt_tokens=len(prompt.tokens))
        run = Run(
            prompt=prompt.tokens,
            most=prompt.room,
            sampling=asked.sampling,
            ends=self.ends,
            teller=Teller(self._decode, asked.stops, self.marks, self._begins_thinking(prompt.tokens)),
            meters=self.meters,
            tell=tell,
            gone=gone,
        )
        try:
            self.family.generate(run)
            run.end()
        except Halt:
            pass
        if self.settings.compile:
            self._tell_compiled()
        return run

    def _tell_compiled(self) -> None:
        """A line in the log for what torch compiled during an answer: a measurement that sees one doesn't count."""
        from torch._dynamo.utils import counters

        graphs = int(counters["stats"]["unique_graphs"])
        if graphs > self.graphs:
            print(f"compiled {graphs - self.graphs} graphs", flush=True)
            self.graphs = graphs

    def _decode(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _begins_thinking(self, prompt: list[int]) -> bool:
        """Whether the template has opened the model's thinking already."""
        last = next((token for token in reversed(prompt) if token in (self.marks or ())), None)
        return last is not None and self.marks is not None and last == self.marks[0]

    def properties(self) -> dict[str, Any]:
        """Everything that is in force, for `/props`."""
        model = self.family.model
        return {
            "server": f"paribus-transformers {code_hash()}",
            "versions": {
                "transformers": transformers.__version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
            "model": self.settings.alias,
            "architecture": type(model).__name__,
            "family": self.family.name,
            "research_implementation": self.family.research or self.settings.trust_remote_code,
            "trust_remote_code": self.settings.trust_remote_code,
            "admitted": ADMITTED,
            "context": self.settings.context,
            "device": _device_name(self.device),
            "threads": torch.get_num_threads(),
            "dtype": str(model.dtype).removeprefix("torch."),
            "attention": getattr(model.config, "_attn_implementation", None),
            "cache": self.settings.cache,
            "compile": self.settings.compile,
            "draft_tokens": self.settings.draft_tokens,
            "sampling_fields": sorted(self.family.fields),
            "sampling_defaults": self.family.defaults,
            "denoising": self.family.denoising,
        }


def _device(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _marks(settings: Settings, tokenizer: Any) -> tuple[int, int] | None:
    if not settings.reasoning:
        return None
    ids = [tokenizer.convert_tokens_to_ids(mark) for mark in settings.reasoning]
    if any(each is None or each == tokenizer.unk_token_id for each in ids):
        raise Unfit(f"the tokenizer has no single tokens {' and '.join(settings.reasoning)} around thinking")
    return ids[0], ids[1]
