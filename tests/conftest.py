"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from scripted import Scripted, start_server

# Time limits on single examples would only measure how busy the machine is.
settings.register_profile("paribus", deadline=None)
settings.load_profile("paribus")


@pytest.fixture(scope="session")
def scripted_server() -> Iterator[Scripted]:
    """One scripted endpoint for the whole session, in its own process."""
    with start_server() as server:
        yield server


@pytest.fixture
def scripted(scripted_server: Scripted) -> Scripted:
    """The scripted endpoint with nothing registered and an empty log.

    `scripted.endpoint(model)` is an `Endpoint`; a model's name is a script by itself (see `named_script`), or one
    registered with `scripted.register(name, Script(...))`; `scripted.log(model)` tells what was sent, and when.
    """
    scripted_server.clear()
    return scripted_server
