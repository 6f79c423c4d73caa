"""Quality runs as records of `every_eval_ever` 0.3.0: one aggregate record a run, one instance record an answer.

The format: <https://github.com/evaleval/every_eval_ever>, its JSON Schemas are in the PyPI wheel of that name. Finish
reason, seed and repeat have no field of their own there; they stand in an instance's `metadata`. Pure functions; the
same run always gives the same records.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paribus.catalog import QualityTask
from paribus.conditions.manifest import LICENCE_STATEMENT
from paribus.quality.journal import Entry
from paribus.quality.samples import Sample
from paribus.quality.summary import BY_EXAM_YEAR, QualitySummary, Score
from paribus.results.run import RunSummary

FORMAT = "0.3.0"
METHODS = {BY_EXAM_YEAR: "Student's t over exam years"}
"""How intervals are made, of scores whose interval is no Beta over questions."""
Record = dict[str, Any]
_DATA_SET = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")


@dataclass(frozen=True)
class Subject:
    """The model as the format names it: hub id, title, developer, availability of its weights."""

    id: str
    title: str
    developer: str
    availability: str


@dataclass(frozen=True)
class Asked:
    """One question as it was asked. `text` and `reference` are null where the items can't be had here."""

    text: str | None
    reference: tuple[str, ...] | None
    choices: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Answered:
    """One answer: its grades, its requests, and for dialogues all messages (null: not known)."""

    sample: Sample
    entries: tuple[Entry, ...]
    messages: tuple[Mapping[str, Any], ...] | None = None


def record_uuid(run_id: str) -> str:
    """A UUID of the form that the format asks for (version 4), always the same for a run."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"paribus {run_id}".encode()).digest()[:16], version=4))


def folder_of(task: QualityTask, subject: Subject) -> str:
    """Where the format wants a run's files: `data/<benchmark>/<developer>/<model>`."""
    return f"data/{task.task}/{subject.developer}/{subject.id.rsplit('/', 1)[-1]}"


def evaluation_id(run: RunSummary, subject: Subject) -> str:
    """The run's id in the format: benchmark, model, time."""
    return f"{run.measure}/{subject.id.replace('/', '_')}/{_epoch(run)}"


def aggregate(
    run: RunSummary, task: QualityTask, subject: Subject, samples_file: str, samples: bytes, *, source: Any = None
) -> Record:
    """The aggregate record of a quality run: every score with its interval, and where its instances are.

    `source`: where the items were observed to come from; the hub's data set is named only where they came from one.
    """
    quality = _quality(run)
    return {
        "schema_version": FORMAT,
        "evaluation_id": evaluation_id(run, subject),
        "evaluation_timestamp": run.starts[0].started_at,
        "retrieved_timestamp": _epoch(run),
        "source_metadata": {
            "source_name": "Paribus",
            "source_type": "evaluation_run",
            "source_organization_name": run.starts[0].contributor,
            "evaluator_relationship": "other",
            "additional_details": _texts(
                run_id=run.run_id,
                run=run.run,
                trust=run.trust,
                licence=LICENCE_STATEMENT,
                flags=", ".join(dict.fromkeys(flag.id for flag in run.flags)) or "none",
            ),
        },
        "eval_library": {"name": "paribus", "version": run.starts[0].versions.get("paribus", "unknown")},
        "model_info": _model(run, subject),
        "evaluation_results": [
            _result(run, task, quality, score, source) for score in quality.scores if score.name not in NO_RESULT
        ],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": samples_file,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(samples).hexdigest(),
            "total_rows": quality.items * quality.repeats,
            "additional_details": _texts(items_hash=quality.items_hash, text=_licence_words(task)),
        },
    }


def _model(run: RunSummary, subject: Subject) -> Record:
    declared = run.conditions
    return {
        "name": subject.title,
        "id": subject.id,
        "developer": subject.developer,
        "inference_engine": {
            "name": str(declared.get("engine", "unknown")),
            "version": str(declared.get("engine_version", "unknown")),
        },
        "additional_details": {
            "deployment_type": "self_deployed" if run.origin == "catalog" else "unknown",
            "model_availability": subject.availability,
            **_texts(
                weights=declared.get("weights"),
                precision=declared.get("precision"),
                decoder=declared.get("decoder"),
                answer_class=run.hashes.get("answer_class"),
                card=declared.get("card"),
            ),
        },
    }


FLOORS = ("null-agent", "guesses")
NO_RESULT = (*FLOORS, "answered")
"""Scores that are none of the model's accuracy: what doing nothing gets, what guesses add, how much could be read."""


def _result(run: RunSummary, task: QualityTask, quality: QualitySummary, score: Score, source: Any) -> Record:
    declared = run.conditions
    details: Record = {"score": score.value}
    if score.low is not None and score.high is not None:
        details["uncertainty"] = {
            "confidence_interval": {
                "lower": score.low,
                "upper": score.high,
                "confidence_level": 0.95,
                "method": METHODS.get(score.name, "Beta at the effective sample size, clustered by question"),
            },
            "num_samples": quality.items,
        }
    details["details"] = _texts(
        failed=quality.failed,
        user_failed=quality.user_failed or None,
        capped=quality.capped,
        answered=quality.answered,
        partial=quality.partial,
        **({s.name: s.value for s in quality.scores if s.name in FLOORS} if score.headline else {}),
    )
    return {
        "evaluation_result_id": result_id(run, score.name),
        "evaluation_name": task.task,
        "source_data": _source(task, quality, source),
        "evaluation_timestamp": run.starts[0].started_at,
        "metric_config": {
            "evaluation_description": task.title,
            "metric_id": f"paribus.{task.family}.{score.name}",
            "metric_name": score.title,
            "metric_kind": "accuracy",
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
            "additional_details": _texts(scorer=quality.scorer, headline=score.headline, repeats=quality.repeats),
        },
        "score_details": details,
        "generation_config": _generation(declared, quality),
    }


def result_id(run: RunSummary, score: str) -> str:
    """The id of one score of one run."""
    return f"{run.run_id}/{score}"


def _generation(declared: Mapping[str, Any], quality: QualitySummary) -> Record:
    """How answers were asked for: only what the engine accepts was sent."""
    wanted, accepted = declared.get("sampling") or {}, declared.get("sampling_accepted") or []
    sent = {name: value for name, value in wanted.items() if name in accepted}
    seeded = "seed" in accepted
    named = {name: sent[name] for name in ("temperature", "top_p", "top_k") if name in sent}
    return {
        "generation_args": {**named, "max_tokens": quality.cap, "reasoning": bool(declared.get("thinking"))},
        "additional_details": _texts(
            sampling_accepted=", ".join(map(str, accepted)),
            sampling_sent=", ".join(f"{name} {value}" for name, value in sent.items()) or "none",
            sampling_left_out=", ".join(name for name in wanted if name not in sent) or None,
            seeds="one for each item and repeat, in the instances' metadata" if seeded else "none: not accepted",
            requests_at_once=quality.requests_at_once,
            user_simulator=declared.get("user_simulator"),
            tool_form=declared.get("tool_form"),
        ),
    }


def _source(task: QualityTask, quality: QualitySummary, source: Any) -> Record:
    """Where the items came from. The format names one data set: several are told in words."""
    origin = str(source) if isinstance(source, str) and source else None
    details = _texts(items_hash=quality.items_hash, version=task.version, stand_in=task.stand_in, items_source=origin)
    hub = [part.partition("@")[0] for part in (origin or "").split(", ") if _DATA_SET.fullmatch(part)]
    if len(hub) != 1 or task.stand_in:
        return {"dataset_name": task.task, "source_type": "other", "additional_details": details}
    return {
        "dataset_name": task.task,
        "source_type": "hf_dataset",
        "hf_repo": hub[0],
        "samples_number": quality.items,
        "additional_details": details,
    }


def instance(run: RunSummary, task: QualityTask, subject: Subject, asked: Asked, answered: Answered) -> Record:
    """One answer, joined to the headline score. Texts of items stand in it only where their licence allows."""
    sample, entries = answered.sample, answered.entries
    headline = next(score.name for score in _quality(run).scores if score.headline)
    dialogue = task.family == "tau2"
    record: Record = {
        "schema_version": FORMAT,
        "evaluation_id": evaluation_id(run, subject),
        "model_id": subject.id,
        "evaluation_name": task.task,
        "evaluation_result_id": result_id(run, headline),
        "sample_id": sample.item,
        "sample_hash": sample_hash(asked),
        "interaction_type": "agentic" if dialogue else "single_turn",
        "input": _input(task, asked),
        "output": None if dialogue else _output(entries),
        "messages": _messages(answered) if dialogue else None,
        "answer_attribution": _attribution(task, sample, len(entries)),
        "evaluation": {"score": sample.correct, "is_correct": sample.correct >= 1, "num_turns": sample.turns},
        "token_usage": _usage(sample),
        "performance": {"latency_ms": sample.answer_time_ms, "time_to_first_token_ms": sample.ttft_ms},
        "error": sample.error,
        "metadata": _metadata(sample, entries),
    }
    if dialogue:
        record["evaluation"]["tool_calls_count"] = sample.tool_calls
    return record


def sample_hash(asked: Asked) -> str | None:
    """sha256 of the item's text and reference, as the format defines it; null where the items can't be had."""
    if asked.text is None:
        return None
    return hashlib.sha256((asked.text + "".join(asked.reference or ())).encode()).hexdigest()


def licensed(task: QualityTask) -> bool:
    """Whether the task's texts may be republished: its file names their licence."""
    return bool(task.settings.get("text_licence"))


def _licence_words(task: QualityTask) -> str:
    named = task.settings.get("text_licence")
    return f"items' text under {named}" if named else "items' text is not republished: ids and hashes"


def _input(task: QualityTask, asked: Asked) -> Record:
    if asked.text is None:
        return {"raw": "", "reference": []}
    if not licensed(task):
        return {"raw": f"sha256:{hashlib.sha256(asked.text.encode()).hexdigest()}", "reference": []}
    choices = None if asked.choices is None else list(asked.choices)
    return {"raw": asked.text, "reference": list(asked.reference or ()), "choices": choices}


def _output(entries: Sequence[Entry]) -> Record:
    reasoning = [entry.reasoning for entry in entries if entry.reasoning]
    return {"raw": [entry.text for entry in entries], "reasoning_trace": reasoning or None}


def _messages(answered: Answered) -> list[Record]:
    """The dialogue in order; where only the model's own turns are on file, those."""
    if answered.messages is not None:
        shown = [(str(m["role"]), str(m.get("content") or "")) for m in answered.messages]
        return [{"turn_idx": place, "role": role, "content": text} for place, (role, text) in enumerate(shown)]
    said = [{"turn_idx": e.turn, "role": "assistant", "content": e.text} for e in answered.entries]
    return said or [{"turn_idx": 0, "role": "assistant", "content": None}]


def _attribution(task: QualityTask, sample: Sample, turns: int) -> list[Record]:
    if sample.answer is None:
        return []
    source = "messages" if task.family == "tau2" else "output.raw"
    return [
        {
            "turn_idx": max(0, turns - 1) if task.family == "tau2" else 0,
            "source": source,
            "extracted_value": sample.answer,
            "extraction_method": task.scorer,
            "is_terminal": True,
        }
    ]


def _usage(sample: Sample) -> Record | None:
    if sample.prompt_tokens is None or sample.tokens is None:
        return None
    return {
        "input_tokens": sample.prompt_tokens,
        "output_tokens": sample.tokens,
        "total_tokens": sample.prompt_tokens + sample.tokens,
        "reasoning_tokens": sample.reasoning_tokens,
    }


def _metadata(sample: Sample, entries: Sequence[Entry]) -> dict[str, str]:
    marks = json.dumps(sample.marks, sort_keys=True) if sample.marks else None
    return _texts(
        repeat=sample.repeat,
        seed=sample.seed,
        finish_reason=sample.finish_reason,
        status=sample.status,
        group=sample.group,
        marks=marks,
        attempts=sum(entry.attempts for entry in entries) or None,
        request_sha256=entries[0].body_sha256 or None if entries else None,
        malformed_calls=sample.malformed_calls or None,
    )


def _texts(**values: Any) -> dict[str, str]:
    """The format's details hold text only; what isn't known is left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None
    }


def _quality(run: RunSummary) -> QualitySummary:
    if run.quality is None:
        raise ValueError(f"{run.run_id} is no quality run")
    return run.quality


def _epoch(run: RunSummary) -> str:
    """When the run ended, in seconds since 1970: the record says nothing that is newer."""
    return f"{datetime.fromisoformat(run.starts[-1].ended_at).timestamp():.0f}"
