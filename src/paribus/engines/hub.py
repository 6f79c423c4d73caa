"""Weights from the hub: one file or a whole repository, at a commit; what goes wrong there, in one sentence."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from paribus.catalog import Weights
from paribus.catalog.offline import OFFLINE, offline
from paribus.conditions import EnvironmentFault
from paribus.engines.install import Tell

TOKEN = "HF_TOKEN"  # noqa: S105 (a variable's name)


def fetch_from_hub(weights: Weights, fresh: Path, tell: Tell) -> tuple[str, str]:
    """Download into `fresh/files`; returns the path below `fresh` (a file, or the folder) and the commit.

    Without a pinned revision the newest commit is resolved first, so that one commit is fetched and can be recorded.
    Raises `EnvironmentFault` for anything that the hub refuses.
    """
    if offline():
        raise EnvironmentFault(f"{weights.repository} would come from the hub, and {OFFLINE} is set")
    try:
        # Imported here: most commands never need it.
        import huggingface_hub as hub
    except ImportError as error:
        raise EnvironmentFault(
            f"{weights.repository} comes from the hub, which needs the package huggingface_hub: "
            "install the extra with `uv sync --extra quality`"
        ) from error
    try:
        commit = _commit(hub, weights)
        if not weights.pinned:
            tell(f"{weights.repository} is not pinned: its newest commit is {commit}")
        target = fresh / "files"
        if weights.file:
            got = Path(hub.hf_hub_download(weights.repository, weights.file, revision=commit, local_dir=target))
        else:
            hub.snapshot_download(weights.repository, revision=commit, local_dir=target)
            got = target
    except EnvironmentFault:
        raise
    except Exception as error:  # the hub's client raises many kinds, its HTTP library's among them
        raise EnvironmentFault(_sentence(weights, error)) from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
    return str(got.relative_to(fresh)), commit


def _commit(hub: Any, weights: Weights) -> str:
    if weights.pinned:
        return weights.revision
    commit = str(hub.HfApi().model_info(weights.repository).sha)
    if re.fullmatch("[0-9a-f]{40}", commit) is None:
        raise EnvironmentFault(f"the hub names no commit of {weights.repository}")
    return commit


def _sentence(weights: Weights, error: Exception) -> str:
    """What went wrong and what to do, from the kind of error (huggingface_hub.errors). Never the token."""
    repository, kind = weights.repository, type(error).__name__
    token = f"the token in {TOKEN}" if os.environ.get(TOKEN, "").strip() else f"no token ({TOKEN} is not set)"
    page = f"https://huggingface.co/{repository}"
    if kind == "GatedRepoError":
        return (
            f"{repository} is gated, and the hub refuses {token}: accept its licence at {page}, then set {TOKEN} to a "
            "token of that account"
        )
    if kind == "RepositoryNotFoundError":
        return f"the hub shows no {repository} to {token}: check its name at {page}, or set {TOKEN} if it is private"
    if kind == "RevisionNotFoundError":
        return f"{repository} has no revision {weights.revision}: correct it in the model's file"
    if kind in ("EntryNotFoundError", "RemoteEntryNotFoundError"):
        return f"{repository} at {weights.revision} has no file {weights.file}: correct it in the model's file"
    said = " ".join(str(error).split())[:200] or kind
    return f"the hub gave no {repository} at {weights.revision}: {said}; check the network, then try again"
