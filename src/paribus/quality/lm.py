"""Our model for lm-eval: it hands each request to an answer function and remembers nothing.

Importing this module imports lm-eval, which takes seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from paribus.quality.asking import Question
from paribus.quality.journal import Entry, Key

AnswerMany = Callable[[Sequence[Question]], list[Entry]]


class ParibusLM(LM):  # type: ignore[misc]  # lm-eval has no types
    """Generates through an answer function: a server with a journal, or a journal alone.

    Requests that lm-eval repeats get their repeat's number, and so a seed of their own. Stop strings are never sent:
    they could fire inside the reasoning.
    """

    def __init__(self, task: str, id_field: str, answer_many: AnswerMany) -> None:
        super().__init__()
        self._task = task
        self._id_field = id_field
        self._answer_many = answer_many

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """One text a request, in order; a failed request is an empty text."""
        seen: Counter[str] = Counter()
        questions = []
        for request in requests:
            context, settings = request.args
            if settings.get("until"):
                raise ValueError("stop strings are not supported: `until` must be empty")
            item = str(request.doc[self._id_field])
            key = Key(self._task, item, seen[item])
            seen[item] += 1
            questions.append(Question(key, ({"role": "user", "content": context},)))
        return ["" if entry.error else entry.text for entry in self._answer_many(questions)]

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        """Not supported: answers are generated, as users see them."""
        raise NotImplementedError("Paribus generates answers; it doesn't ask for likelihoods")

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        """Not supported."""
        raise NotImplementedError("Paribus generates answers; it doesn't ask for likelihoods")
