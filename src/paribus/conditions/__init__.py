"""Conditions: the vocabulary of the whole product. Names, paths, hashes, flags, manifests, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.lazily import lazily

if TYPE_CHECKING:
    from paribus.conditions.errors import CheckFailed, EnvironmentFault, ParibusError, UsageError
    from paribus.conditions.flags import FLAGS, Flag, FlagKind, flag
    from paribus.conditions.hashing import canonical, conditions_hash, figure_id, hash12, run_id, sha256_file
    from paribus.conditions.manifest import FileEntry, Manifest, Timings
    from paribus.conditions.naming import RunPath, SystemName, decoder_method, inside, is_slug, slug, start_number
    from paribus.conditions.registry import CONDITIONS, Condition, differences
    from paribus.conditions.strangers import harmless, one_line

__all__ = [
    "CONDITIONS",
    "FLAGS",
    "CheckFailed",
    "Condition",
    "EnvironmentFault",
    "FileEntry",
    "Flag",
    "FlagKind",
    "Manifest",
    "ParibusError",
    "RunPath",
    "SystemName",
    "Timings",
    "UsageError",
    "canonical",
    "conditions_hash",
    "decoder_method",
    "differences",
    "figure_id",
    "flag",
    "harmless",
    "hash12",
    "inside",
    "is_slug",
    "one_line",
    "run_id",
    "sha256_file",
    "slug",
    "start_number",
]

if not TYPE_CHECKING:  # which must see a wrong name
    __getattr__ = lazily(__name__)  # see there for the rule
