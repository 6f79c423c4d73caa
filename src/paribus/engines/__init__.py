"""Engines: adapters of serving programs, their locked environments and weights, sessions and jobs."""

from paribus.engines.base import COUNTERS, GAUGES, Adapter, Compilation, Engine, Launch, Running, StartRecord
from paribus.engines.envs import (
    build_environment,
    engine_build_id,
    environment_folder,
    environment_marker,
    environment_python,
    lock_file,
)
from paribus.engines.job import Measure, find_job, run_job
from paribus.engines.registry import engine, engines
from paribus.engines.session import Session, open_session
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
    "engine",
    "engine_build_id",
    "engines",
    "environment_folder",
    "environment_marker",
    "environment_python",
    "fetch_weights",
    "find_job",
    "lock_file",
    "open_session",
    "run_job",
    "weights_marker",
    "weights_path",
]
