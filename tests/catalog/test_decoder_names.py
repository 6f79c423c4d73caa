"""A decoder's name begins with its method: published results are told apart by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.catalog import Catalog
from paribus.conditions import decoder_method

DECODERS = {
    (model.model, engine, name): decoder.method
    for model in Catalog(Path(__file__).parents[2]).models.values()
    for engine, use in model.engines.items()
    for name, decoder in use.decoders.items()
}


@pytest.mark.parametrize("where", sorted(DECODERS), ids="--".join)
def test_every_decoder_of_the_catalog_is_named_after_its_method(where):
    assert decoder_method(where[2]) == DECODERS[where]
