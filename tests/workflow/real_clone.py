"""A clone of the working tree in a temporary folder, for tests that run the real workflow on the real engine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

OURS = Path(__file__).resolve().parents[2]
BINARIES = Path(sys.executable).parent


class RealClone:
    """The tracked and new files of this working tree, somewhere else, with locks and a machine's label of its own."""

    def __init__(self, root: Path):
        self.root = root
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=OURS, capture_output=True, check=True
        ).stdout
        for name in filter(None, listed.decode().split("\0")):
            source, target = OURS / name, root / name
            if source.is_file() and not name.startswith(("tests/", "docs/")):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PARIBUS_", "SNAKEMAKE_"))}
        path = f"{BINARIES}{os.pathsep}{kept['PATH']}"
        own = {"PARIBUS_MACHINE": "m-test", "PARIBUS_LOCKS": str(self.root / "build/locks"), "HF_HUB_OFFLINE": "1"}
        return {**kept, **own, "PATH": path}

    def command(self, *settings: str) -> list[str]:
        return ["snakemake", "--profile", "hardware/cpu", "--config", "scale=tiny", *settings]

    def run(self, *settings: str) -> subprocess.CompletedProcess[str]:
        return self.call(*self.command(*settings))

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.root, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip

    def start(self, *settings: str) -> subprocess.Popen[bytes]:
        log = (self.root / "workflow.log").open("ab")
        return subprocess.Popen(
            self.command(*settings), cwd=self.root, env=self.environment, stdout=log, stderr=log, start_new_session=True
        )

    def processes(self) -> list[psutil.Process]:
        """Processes of this clone: those that have its path in their command or work in it."""
        found = []
        for process in psutil.process_iter():
            try:
                text = " ".join(process.cmdline())
                mine = str(self.root) in text or process.cwd() == str(self.root)
                if mine and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def manifests(self) -> dict[Path, bytes]:
        """Every start's manifest with its bytes."""
        return {p: p.read_bytes() for p in self.root.glob("build/demo-results/*/*/*/*/*/start-*/manifest.json")}
