"""Engines: adapters of serving programs, their locked environments and weights, sessions and jobs."""

from paribus.engines.base import (
    COUNTERS,
    GAUGES,
    Adapter,
    Compilation,
    Engine,
    Launch,
    Running,
    StartRecord,
    refuse_unknown,
)
from paribus.engines.envs import (
    build_environment,
    environment_build,
    environment_folder,
    environment_marker,
    environment_python,
    lock_file,
)
from paribus.engines.images import fetch_image
from paribus.engines.job import Measure, find_job, run_job
from paribus.engines.launching import check_launch, planned_launch
from paribus.engines.opening import open_session, way_of
from paribus.engines.registry import engine, engines
from paribus.engines.session import Session
from paribus.engines.weights import fetch_weights, weights_marker, weights_path

__all__ = [
    "COUNTERS",
    "GAUGES",
    "Adapter",
    "Compilation",
    "Engine",
    "Launch",
    "Measure",
    "Running",
    "Session",
    "StartRecord",
    "build_environment",
    "check_launch",
    "engine",
    "engines",
    "environment_build",
    "environment_folder",
    "environment_marker",
    "environment_python",
    "fetch_image",
    "fetch_weights",
    "find_job",
    "lock_file",
    "open_session",
    "planned_launch",
    "refuse_unknown",
    "run_job",
    "way_of",
    "weights_marker",
    "weights_path",
]
