"""Whether a start's card is its profile's, proven again from what the manifest says was observed."""

from __future__ import annotations

from paribus.catalog import Catalog
from paribus.conditions import UsageError
from paribus.machine.proof import prove
from paribus.results.findings import Report
from paribus.results.run import Start


def check_card(start: Start, where: str, catalog: Catalog, report: Report) -> None:
    """The observed card must be the profile's, and its variant the one that the facts make it.

    What was observed is the contributor's word: this finds what doesn't hold together, not what is invented whole.
    """
    declared, observed = start.manifest.declared, start.manifest.observed
    try:
        hardware = str(declared.get("hardware"))
        card = catalog.hardware(hardware).card
    except UsageError:
        report.say("conditions", where, "not checked", "this clone has no such hardware profile")
        return
    if card.kind in ("cpu", "hosted"):
        return
    proof = prove(hardware, card, observed)
    if proof.refusal is not None:
        report.say("conditions", where, "fails", proof.refusal.text)
        return
    made, said = proof.observed["card_variant"], observed.get("card_variant")
    report.expect("conditions", where, said == made, f"card_variant is {said!r}; what was observed makes it {made!r}")
