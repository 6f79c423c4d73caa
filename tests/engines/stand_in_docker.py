"""Plays docker or apptainer: notes how it was called, and runs a container's program here, its paths mapped back.

Copied to a folder on the path under the name it plays; what it notes goes to `calls.jsonl` beside it.
"""

import json
import os
import signal
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
with (here / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps(sys.argv) + "\n")

VALUED = {"--name", "--publish", "--dns", "--ipc", "--gpus", "--entrypoint", "--pull", "--env", "--volume", "--bind"}


def run(words):
    """Parse the options that Paribus uses, and become the program."""
    mapped, variables, name = [], {"PATH": os.environ["PATH"]}, "none"
    while words[0].startswith("--"):
        option = words.pop(0)
        value = words.pop(0) if option in VALUED else ""
        if option in ("--volume", "--bind"):
            there, inside, mode = value.rsplit(":", 2)
            assert mode == "ro"
            mapped.append((inside, there))
        elif option == "--env":
            key, _, text = value.partition("=")
            variables[key] = text
        elif option == "--name":
            name = value
    words.pop(0)  # the image
    for inside, there in sorted(mapped, reverse=True):
        words = [word.replace(inside, there) for word in words]
    (here / f"{name}.pid").write_text(str(os.getpid()))
    (here / "variables.json").write_text(json.dumps(variables))
    os.execvpe(words[0], words, variables)


command = sys.argv[1]
if command in ("run", "exec"):
    run(sys.argv[2:])
elif command == "rm":
    try:
        os.kill(int((here / f"{sys.argv[-1]}.pid").read_text()), signal.SIGKILL)
    except (OSError, ValueError):
        sys.exit(1)
elif command == "pull":
    if "refused" in sys.argv[-1]:
        print("Error response from daemon: manifest for the image not found")
        sys.exit(1)
    if len(sys.argv) > 4:
        Path(sys.argv[-2]).write_text("an image")
