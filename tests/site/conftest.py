"""Rendered sites of several worlds, made once a session."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from building_sites import Built, build
from synthetic_site import World, demo_world, hostile_world, wide_world


def _site(world: Callable[[], World]):
    @pytest.fixture(scope="session")
    def made(tmp_path_factory: pytest.TempPathFactory) -> Built:
        return build(world(), tmp_path_factory.mktemp("site"))

    return made


demo = _site(demo_world)
wide = _site(wide_world)
hostile = _site(hostile_world)
empty = _site(World)


@pytest.fixture(params=["empty", "demo", "wide", "hostile"])
def any_site(request: pytest.FixtureRequest) -> Built:
    """Each of the sites in turn."""
    found: Built = request.getfixturevalue(request.param)
    return found
