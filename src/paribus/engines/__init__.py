"""Engines: adapters of serving programs, their locked environments and weights, sessions and jobs."""

from paribus.engines.base import COUNTERS, GAUGES, Engine, Launch, StartRecord
from paribus.engines.envs import engine_build_id, environment_folder, environment_marker, lock_file
from paribus.engines.job import run_job
from paribus.engines.session import Session, open_session

__all__ = [
    "COUNTERS",
    "GAUGES",
    "Engine",
    "Launch",
    "Session",
    "StartRecord",
    "engine_build_id",
    "environment_folder",
    "environment_marker",
    "lock_file",
    "open_session",
    "run_job",
]
