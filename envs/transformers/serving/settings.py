"""What the server is started with: one JSON object, checked. A key that it doesn't know ends it with a sentence."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]


class Unfit(Exception):
    """The settings, the model, or a request can't be served; the text says why, in one sentence."""


@dataclass(frozen=True)
class Settings:
    """Settings of one server. `family` empty: found by the model's architecture.

    `denoising`: lossy settings of a diffusion family (steps, thresholds, block or canvas length); its file says which.
    `reasoning`: the tokens that open and close a model's thinking. `drafter`: the weights of an assistant model.
    """

    model: str
    alias: str
    port: int
    host: str = "127.0.0.1"
    family: str = ""
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 1
    context: int = 4096
    attention: str = ""
    cache: str = "dynamic"
    compile: bool = False
    trust_remote_code: bool = False
    drafter: str = ""
    draft_tokens: int = 0
    denoising: dict[str, Any] = field(default_factory=dict)
    reasoning: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Settings:
        """Parse the JSON. Raises `Unfit`."""
        try:
            given = json.loads(text)
        except ValueError as error:
            raise Unfit(f"the settings are no JSON: {error}") from error
        if not isinstance(given, dict):
            raise Unfit("the settings must be a JSON object")
        unknown = sorted(set(given) - {each.name for each in fields(cls)})
        if unknown:
            raise Unfit(f"unknown settings: {', '.join(unknown)}")
        if isinstance(given.get("reasoning"), list):
            given["reasoning"] = tuple(given["reasoning"])
        try:
            settings = cls(**given)
        except TypeError as error:
            raise Unfit(f"the settings are incomplete: {error}") from error
        if len(settings.reasoning) not in (0, 2):
            raise Unfit("reasoning needs two tokens, the one that opens it and the one that closes it")
        return settings


def code_hash() -> str:
    """12 hex digits of this server's own source: the sampler loops in it decide answers, so that it is a version."""
    digest = hashlib.sha256()
    for path in sorted([HERE / "server.py", *(HERE / "serving").rglob("*.py")]):
        digest.update(f"{path.relative_to(HERE).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
