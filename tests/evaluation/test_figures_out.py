"""The figures of a result as a table that other programs read: Parquet, and JSON that a schema describes."""

import json
import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from support.paths import DOCS

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.long_table import (
    ALL_FILES,
    FURTHER,
    NUMBERS,
    tabulate_figures,
    view_frame,
)
from disclosure_pipeline.evidence.dossier import collect_figures, to_rows
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.words import Basis

jsonschema: Any = pytest.importorskip("jsonschema", reason="validates against a schema")
SCHEMA = json.loads((DOCS / "figures.schema.json").read_text(encoding="utf-8"))


def people(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {"a": random.integers(0, 9, 200), "b": random.integers(0, 3, 200), "c": random.integers(0, 4, 200)}
    )


@pytest.fixture(params=[1, 2], ids=["a synthesis", "two syntheses"])
def result(request: pytest.FixtureRequest) -> dp.Disclosure:
    return dp.disclosure(people(0), [people(seed + 1) for seed in range(request.param)], ["a", "b"], ["c"])


@pytest.mark.parametrize(
    ("options", "measured"),
    [
        (
            {"unit": "u", "weights": "w", "holdout": people(9).assign(u=range(200, 400), w=2.0)},
            {"units", "population", "population_targets", "membership"},
        ),
        (
            {"sampling_fraction": 0.1, "within": {"c": 1}, "exclude": dp.Exclusions(count_over=30)},
            {"population", "population_targets", "bands"},
        ),
        ({"weights": "w", "within": {"c": 1}}, {"population", "population_targets", "bands"}),
    ],
    ids=["units and weights", "bands and exclusions", "bands and weights"],
)
def test_the_frames_are_views_of_them(options: Any, measured: set[str]) -> None:
    gt, compared = people(0).assign(u=np.arange(200) // 2, w=1.5 + np.arange(200) % 3), set()
    columns = ["a", "b", "c", *(options[name] for name in ("unit", "weights") if name in options)]
    result = dp.disclosure(gt[columns], [people(1), people(2)], ["a", "b"], ["c"], **options)
    figures = collect_figures(result, 10)
    for name in {entry.find_place(basis).frame for entry in FIGURES.values() for basis in get_args(Basis)}:
        rows, expected = view_frame(figures, name), to_rows(result.frame(name))
        assert len(rows) in {0, len(expected)}, name
        for row, of_frame in zip(rows, expected, strict=False):
            for column in (row.keys() & of_frame.keys()) - {"where"}:
                assert row[column] == of_frame[column], (name, column)
                compared.add(name)
    assert compared > {"identity", "attribute", "found", "together", *measured}


def test_all_files_as_one_have_the_further_columns_of_their_frames() -> None:
    result = dp.disclosure(people(0), [people(1), people(2)], ["a", "b"], ["c"])
    assert result.stacked is not None
    further = [entry for entry in FURTHER.values() if entry.place.frame in {"attribute", "identity"}]
    rows = [row for row in tabulate_figures(result, further) if row.part == ALL_FILES]
    assert {row.figure for row in rows} == {entry.name for entry in further}
    for row in rows:
        frame, _, column = row.figure.partition(".")
        [figure] = result.stacked.frame(frame)[column]
        assert row.value == figure or math.isnan(figure), row.figure


def test_parquet_keeps_them(result: dp.Disclosure, tmp_path: Path) -> None:
    result.figures.to_parquet(tmp_path / "figures.parquet")
    assert_frame_equal(pd.read_parquet(tmp_path / "figures.parquet"), result.figures)


def test_the_schema_in_the_documentation_describes_them(result: dp.Disclosure) -> None:
    written: Any = json.loads(result.figures.to_json(orient="records", double_precision=15))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(written)
    again = pd.DataFrame(written).astype(dict.fromkeys(NUMBERS, float))
    assert_frame_equal(again, result.figures)
    assert list(SCHEMA["items"]["properties"]) == list(result.figures.columns)
    for change in ({"figure": None}, {"part": "0"}, {"basis": "households"}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([{**written[0], **change}], SCHEMA)
