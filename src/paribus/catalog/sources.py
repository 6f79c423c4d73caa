"""Prompt sets that are not ours: public ones and random tokens; where their prompts lie once they were fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from paribus.catalog.specs import UNPINNED, SlugName, Spec

FETCHED = Path("build") / "prompts"
"""Folder, below the repository, of prompts that were fetched. Git ignores it: none of their text is stored with us."""

COMMIT = r"^([0-9a-f]{40}|unpinned)$"
REPOSITORY = r"^[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}$"
Commit = Annotated[str, Field(pattern=COMMIT)]
Repository = Annotated[str, Field(pattern=REPOSITORY)]


class PromptSource(Spec):
    """A prompt set that is not ours: `tasks/speed/prompts/<set>.yaml`.

    Rows of a public set have an id (`question_id`), a `category` and `turns`, the user's messages in order. `hub`:
    `config` and `split` of a data set on the hub; `github`: one `file` of a repository. `local`: file names looked for
    below `PARIBUS_DATA` first. `random`: `rows` prompts of so many random `tokens` of the standard tokenizer, drawn
    with a `seed`, for claims that were made that way and for nothing else.
    """

    set: SlugName
    title: str
    about: str
    licence: str
    host: Literal["hub", "github", "random"]
    repository: Repository | None = None
    revision: Commit = UNPINNED
    config: str | None = None
    split: str = "test"
    file: str | None = Field(default=None, pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*$")
    local: list[str] = []
    rows: int = Field(ge=1)
    """Rows of the whole set at the revision."""
    tokens: int | None = Field(default=None, ge=1, le=100_000)
    seed: int = 0
    placeholder: str | None = None
    """Rows with this text in a turn hold no prompt, only a reference; they are left out."""
    warm_up: SlugName
    """The set of ours whose tuning prompts warm the server up: all of this set's own prompts are measured."""
    note: str = ""

    @model_validator(mode="after")
    def _a_place(self) -> PromptSource:
        if (self.host == "random") != (self.repository is None) or (self.host == "random") != (self.tokens is not None):
            raise ValueError("random prompts have a number of tokens, public ones a repository")
        if (self.host == "github") != (self.file is not None):
            raise ValueError("a GitHub repository needs a file, a data set on the hub has none")
        return self

    @property
    def pinned(self) -> bool:
        """Whether the set can't change: a commit, or a seed. Else what is fetched may change from day to day."""
        return self.host == "random" or self.revision != UNPINNED

    @property
    def origin(self) -> str:
        """The repository and the revision, in words."""
        if self.host == "random":
            return f"{self.tokens:,} random standard tokens each, seed {self.seed}"
        config = f" ({self.config}, {self.split})" if self.config else ""
        at = f"at {self.revision[:12]}" if self.pinned else "at no pinned revision"
        return f"{self.repository}{config} {at}"

    def fetched(self, root: Path) -> Path:
        """Where its prompts lie once they were fetched."""
        return root / FETCHED / f"{self.set}.jsonl"
