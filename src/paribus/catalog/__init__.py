"""The catalog: systems, hardware, tasks, prompts, pairs and the plan made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.lazily import lazily

if TYPE_CHECKING:
    from paribus.catalog.hardware import Card, HardwareFile, Speeds, Variant
    from paribus.catalog.load import Catalog, Pair, PairsFile, matches
    from paribus.catalog.models import (
        NEUTRAL,
        Decoder,
        Drafter,
        EngineUse,
        Hosted,
        Image,
        ModelFile,
        Needs,
        Precision,
        Sampling,
        Scalar,
        Spec,
        System,
        Weights,
        split_launch,
    )
    from paribus.catalog.plan import Candidate, Job, Plan, PlannedMeasure, PlannedRun, Race, Totals, Verdict
    from paribus.catalog.prompts import Check, PromptLine, SetPrompt, prompts_hash, read_prompt_set, read_prompts
    from paribus.catalog.reading import read_yaml
    from paribus.catalog.resolving import resolve
    from paribus.catalog.sources import PromptSource
    from paribus.catalog.surroundings import Part, Surroundings
    from paribus.catalog.tasks import KINDS, Canary, Effort, HubSource, QualityTask, Scale, Scenario, TaskData

__all__ = [
    "KINDS",
    "NEUTRAL",
    "Canary",
    "Candidate",
    "Card",
    "Catalog",
    "Check",
    "Decoder",
    "Drafter",
    "Effort",
    "EngineUse",
    "HardwareFile",
    "Hosted",
    "HubSource",
    "Image",
    "Job",
    "ModelFile",
    "Needs",
    "Pair",
    "PairsFile",
    "Part",
    "Plan",
    "PlannedMeasure",
    "PlannedRun",
    "Precision",
    "PromptLine",
    "PromptSource",
    "QualityTask",
    "Race",
    "Sampling",
    "Scalar",
    "Scale",
    "Scenario",
    "SetPrompt",
    "Spec",
    "Speeds",
    "Surroundings",
    "System",
    "TaskData",
    "Totals",
    "Variant",
    "Verdict",
    "Weights",
    "matches",
    "prompts_hash",
    "read_prompt_set",
    "read_prompts",
    "read_yaml",
    "resolve",
    "split_launch",
]

if not TYPE_CHECKING:  # which must see a wrong name
    __getattr__ = lazily(__name__)  # see there for the rule
