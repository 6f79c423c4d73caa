"""The page of systems: every model of the catalog, every card, every doubt and every weight that isn't pinned."""

from __future__ import annotations

from building_sites import Built

from paribus.catalog import Catalog


def test_every_model_of_the_catalog_is_there_with_its_doubts(empty: Built) -> None:
    text = empty.page("systems.html").text
    for model in Catalog(empty.root).models.values():
        assert model.title in text
        for precision in model.precisions.values():
            assert precision.weights.source == "hosted" or precision.weights.repository in text
        for doubt in (model.unverified, model.unsupported, *(use.unverified for use in model.engines.values())):
            assert doubt is None or " ".join(doubt.split()) in text


def test_research_models_have_a_track_of_their_own_and_nothing_unpinned_is_hidden(empty: Built) -> None:
    page = empty.page("systems.html")
    titles = [e.text for e in page.elements if e.name == "h2"]
    assert titles == ["Models that follow instructions", "Research models, a track of their own"]
    tags = [e for e in page.elements if e.name == "span" and e.text == "unpinned"]
    models = Catalog(empty.root).models.values()
    weights = [p.weights for m in models for p in m.precisions.values()]
    drafters = {
        (m.model, decoder.drafter)
        for m in models
        for use in m.engines.values()
        for decoder in use.decoders.values()
        if decoder.drafter is not None
    }
    assert len(tags) == sum(not w.pinned for w in (*weights, *(drafter for _, drafter in drafters))) > 0


def test_every_card_is_a_column_and_a_no_has_its_reason(empty: Built) -> None:
    page = empty.page("systems.html")
    heads = {e.text for e in page.elements if e.name == "th" and e.attributes.get("scope") == "col"}
    cards = {path.parent.name for path in empty.root.glob("hardware/*/hardware.yaml")}
    assert cards <= heads
    assert all(e.attributes.get("title") for e in page.elements if e.name == "td" and e.text in {"too big", "yes?"})


def test_what_a_number_rests_on_stands_beside_it(empty: Built) -> None:
    text = empty.page("systems.html").text
    models = Catalog(empty.root).models
    precisions = [precision for model in models.values() for precision in model.precisions.values()]
    drafters = [
        decoder.drafter
        for model in models.values()
        for use in model.engines.values()
        for decoder in use.decoders.values()
        if decoder.drafter is not None
    ]
    assert all(drafter.repository in text for drafter in drafters)
    sources = [p.memory_source for p in precisions]
    sources += [weights.revision_source for weights in (*drafters, *(p.weights for p in precisions))]
    assert len([source for source in sources if source]) > 10
    for source in sources:
        assert source is None or " ".join(source.split()) in text
    most = [model.max_output for model in models.values() if model.max_output]
    assert most
    for tokens in most:
        assert f"answers of at most {tokens:,}" in text
