"""A chart that kills the process that draws it does not take the dossier along."""

import xml.etree.ElementTree as ET

import pytest
from support.processes import fork

from disclosure_pipeline.evaluation.plots import drawing
from disclosure_pipeline.evidence.page import charts

MARKS = {"figure": charts.SYNTHETIC}


def test_only_the_chart_that_crashes_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control character aborts vl-convert."""
    fine = charts.draw_rows([("fine", "figure", 50.0)], MARKS, "%")
    with monkeypatch.context() as unescaped:
        unescaped.setattr(drawing, "escape_unseen_in_lines", str)
        broken = charts.draw_rows([("\x1b broken", "figure", 50.0)], MARKS, "%")
    assert "could not be drawn" in broken
    again = charts.draw_rows([("fine too", "figure", 50.0)], MARKS, "%")
    assert ET.fromstring(again).tag == "svg"
    assert ET.fromstring(fine).tag == "svg"


def test_a_fork_draws_with_a_process_of_its_own() -> None:
    specification = {"data": {"values": [{"a": 1}]}, "mark": "point"}
    drawn = drawing.convert(specification)
    assert fork(drawing.convert, specification).result() == drawn
    assert drawing.convert(specification) == drawn


def test_what_is_no_chart_is_an_error() -> None:
    with pytest.raises(drawing.DrawingError):
        drawing.convert({"mark": 7})
