"""Servers that somebody else runs: their address and key from a system's file and the environment."""

from __future__ import annotations

import os

from paribus.catalog import Hosted
from paribus.conditions import EnvironmentFault, UsageError
from paribus.wire import Endpoint


def endpoint_of(hosted: Hosted) -> Endpoint:
    """The endpoint of a hosted system. `EnvironmentFault` names the variable that is missing; never the key."""
    endpoint = Endpoint(base_url=_address(hosted), model=hosted.model, api_key=_key(hosted))
    endpoint.address()
    return endpoint


def _address(hosted: Hosted) -> str:
    if hosted.url is not None:
        return hosted.url
    given = os.environ.get(hosted.url_env or "", "").strip().rstrip("/")
    if not given:
        raise EnvironmentFault(
            f"the environment variable {hosted.url_env} must hold the server's address, such as "
            "http://127.0.0.1:1234/v1"
        )
    if not given.endswith("/v1"):
        raise UsageError(f"{hosted.url_env} must end with /v1, such as http://127.0.0.1:1234/v1")
    return given


def _key(hosted: Hosted) -> str | None:
    if hosted.api_key_env is None:
        return None
    key = os.environ.get(hosted.api_key_env, "").strip()
    if not key:
        raise EnvironmentFault(f"the environment variable {hosted.api_key_env} holds no API key for {hosted.model}")
    return key
