"""Which fields of a request make its load synthetic."""

from __future__ import annotations

import pytest

from paribus.speed.synthetic import synthetic_fields


@pytest.mark.parametrize(
    "name",
    ["ignore_eos", "ignore_eos_token", "min_tokens", "min_new_tokens", "min_length", "max_denoising_steps", "steps"],
)
def test_a_field_that_is_on_is_found_at_any_depth_and_one_that_is_off_is_none(name):
    assert synthetic_fields({"top_k": 3, name: 5}) == [name]
    assert synthetic_fields({"nvext": {"more": {name: True}}, name: 1}) == [name]
    assert synthetic_fields({name: 0, "nvext": {name: False, "more": None}}) == []


def test_fields_that_only_sound_alike_are_none():
    assert synthetic_fields({"min_p": 0.1, "max_tokens": 5, "stop": ["steps"], "min_tokens_before": "x"}) == []
    schema = {"schema": {"properties": {"steps": {"type": "array"}}, "min_length": 3}}
    assert synthetic_fields({"response_format": schema, "guided_json": schema, "tools": [schema]}) == []
