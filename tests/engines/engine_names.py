"""Reads, out of an engine's own sources, the names that it knows: flags, fields of its JSON settings, variables.

`python tests/engines/engine_names.py vllm=FOLDER sglang=FOLDER mlx=FOLDER,FOLDER llamacpp=FILE` writes
`recorded/names.json`. The folders are packages out of the wheels of the pinned versions (`envs/*/requirements.in`); the
file is llama.cpp's library, which holds the program's flags as text. Nothing is imported or run.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded") / "names.json"
_FLAG = re.compile(r'"(--[a-z][a-z0-9_-]+)"')
_VARIABLE = re.compile(r"""["']([A-Z][A-Z0-9_]{3,})["']""")


def kebab(name: str) -> str:
    """The flag of a field."""
    return "--" + name.replace("_", "-")


def fields_of(path: Path, name: str) -> dict[str, ast.AnnAssign]:
    """The annotated fields of a class, or of all classes for `*`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and name in ("*", node.name)]
    found = [node for each in classes for node in each.body if isinstance(node, ast.AnnAssign)]
    return {node.target.id: node for node in found if isinstance(node.target, ast.Name)}


def texts(paths: Iterable[Path], pattern: re.Pattern[str]) -> set[str]:
    """What a pattern finds in sources."""
    return {match for path in paths for match in pattern.findall(path.read_text(encoding="utf-8", errors="replace"))}


def vllm(folder: Path) -> dict[str, set[str]]:
    """`folder`: the package. Frontend flags are the fields of classes, the engine's stand in text."""
    written = {path: path.read_text(encoding="utf-8") for path in folder.glob("entrypoints/*/cli_args.py")}
    (frontend,) = [path for path, text in written.items() if "enable_auto_tool_choice: bool" in text]
    return {
        "flags": texts([folder / "engine" / "arg_utils.py"], _FLAG) | set(map(kebab, fields_of(frontend, "*"))),
        "speculative": set(fields_of(folder / "config/speculative.py", "SpeculativeConfig")),
        "attention_config": set(fields_of(folder / "config/attention.py", "AttentionConfig")),
        "kernel_config": set(fields_of(folder / "config/kernel.py", "KernelConfig")),
        "compilation_config": set(fields_of(folder / "config/compilation.py", "CompilationConfig")),
        "diffusion_config": set(fields_of(folder / "config/diffusion.py", "DiffusionConfig")),
        "variables": texts([folder / "envs.py"], _VARIABLE),
    }


def sglang(folder: Path) -> dict[str, set[str]]:
    """`folder`: the package. A field is a flag, under another name where it says so, or stands in `server_args.py`."""
    place = folder / "srt"
    flags = texts([place / "server_args.py"], _FLAG)
    for path in sorted((place / "arg_groups" / "fields").glob("*.py")):
        for name, node in fields_of(path, "*").items():
            words = {key.arg: key.value for key in ast.walk(node.annotation) if isinstance(key, ast.keyword)}
            if "no_cli" not in words:
                named = words.get("cli_name")
                flags |= {ast.literal_eval(named) if named else kebab(name)}
    algorithms = [*(place / "dllm" / "algorithm").glob("*.py"), place / "dllm" / "config.py"]
    return {
        "flags": flags,
        "denoising": texts(algorithms, re.compile(r'"([a-z_]+)"')),
        "variables": texts(place.rglob("*.py"), re.compile(r"\b(SGLANG_[A-Z0-9_]+_(?:IP|PATH))\b")),
    }


def mlx(vlm: Path, lm: Path) -> dict[str, set[str]]:
    """The packages of mlx-vlm and mlx-lm."""
    return {
        "vlm_flags": texts((vlm / "server").glob("*.py"), _FLAG),
        "lm_flags": texts([lm / "server.py"], _FLAG),
        "request_fields": set(fields_of(vlm / "server" / "schemas.py", "*")),
    }


def llamacpp(library: Path) -> dict[str, set[str]]:
    """The wheel's library: flags stand in it as text."""
    return {"flags": {found.decode() for found in re.findall(rb"--[a-z][a-z0-9-]{2,}", library.read_bytes())}}


def main(given: list[str]) -> None:
    """Record the names."""
    readers = {"vllm": vllm, "sglang": sglang, "mlx": mlx, "llamacpp": llamacpp}
    places = {name: [Path(p) for p in paths.split(",")] for name, _, paths in (each.partition("=") for each in given)}
    found = {name: readers[name](*paths) for name, paths in places.items()}
    written = {name: {kind: sorted(names) for kind, names in kinds.items()} for name, kinds in sorted(found.items())}
    RECORDED.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
