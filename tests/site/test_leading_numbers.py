"""Which number leads a board at several requests: the steady window's for all rows, or the whole run's for all."""

from __future__ import annotations

from types import SimpleNamespace

from paribus.site.pages.headline import lead_metric


def row(**figures: bool) -> SimpleNamespace:
    """A run by its figures: name and whether it is the run's own headline."""
    return SimpleNamespace(figures={name: SimpleNamespace(headline=head) for name, head in figures.items()})


WITH = row(throughput=True, throughput_whole_run=False)
WITHOUT = row(throughput_whole_run=True)


def test_throughput_leads_where_every_row_has_a_steady_window():
    assert lead_metric([WITH, WITH]) == "throughput"


def test_one_row_without_a_window_makes_all_lead_with_the_whole_run():
    assert lead_metric([WITH, WITH, WITHOUT]) == "throughput_whole_run"
    assert lead_metric([WITHOUT]) == "throughput_whole_run"
