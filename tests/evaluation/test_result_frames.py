"""The frames of a result: their types with and without rows, and that each is its own."""

from functools import partial

import numpy as np
import pandas as pd

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.evaluation.frames import frame_of, list_of

INDEX = ["target", "synthesis"]


def test_columns_keep_their_types_and_the_index_its_values() -> None:
    rows = {("a", 2): {"share": 0.5, "records": 3}, (("a", 1), 1): {"share": float("nan"), "records": 4}}
    frame = frame_of(rows, INDEX, ["share", "records"])
    assert frame.dtypes.tolist() == [np.float64, np.int64]
    assert list(frame.index) == [("a", 2), (("a", 1), 1)]
    assert frame.index.names == INDEX
    shares = frame_of(rows, INDEX, ["share"])
    pd.testing.assert_frame_equal(shares, frame[["share"]], check_exact=True)
    whole = frame_of({("a",): {"records": 3}}, ["target"], ["records"])
    assert whole["records"].dtype == np.int64  # also where every figure is a whole number


def test_a_frame_like_another_has_its_labels_and_no_more() -> None:
    rows = {("a", 1): {"share": 0.5}}
    frame = frame_of(rows, INDEX, ["share"])
    other = frame_of(rows, INDEX, ["share"], frame)
    pd.testing.assert_frame_equal(frame, other, check_exact=True)
    other.index.names = ["t", "s"]
    other.loc[("a", 1), "share"] = 1.0
    assert frame.index.names == INDEX
    assert frame["share"].tolist() == [0.5]


def test_frames_without_rows_are_each_their_own() -> None:
    for make in (partial(frame_of, {}, INDEX, ["share"]), partial(list_of, {"share": []})):
        empty = make()
        assert empty.empty
        assert empty.dtypes.tolist() == [object]
        empty["more"] = 1
        empty.index.names = [None] * empty.index.nlevels
        again = make()
        assert list(again.columns) == ["share"]
        assert list(again.index.names) == (INDEX if again.index.nlevels > 1 else [None])
    assert frame_of({}, INDEX, ["share"]).index.names == INDEX


def test_a_frame_that_the_library_returns_prints_every_column() -> None:
    gt, sd = population(200, 1), population(200, 2)
    for result in (
        dp.copies(gt, sd),
        dp.nearest(gt, sd),
        dp.subgroups(gt, sd, ["age", "sex"], "work", by="region"),
        dp.anonymity_loss(gt, sd, ["age", "sex"], "work"),
        dp.disclosure_over_releases(gt, sd, ["age", "sex"], "work", earlier=[gt]),
    ):
        printed, on_a_page = str(result), result.to_html()
        assert "..." not in printed
        assert max(map(len, printed.splitlines())) <= 80
        assert all(str(column) in printed and str(column) in on_a_page for column in result)
        assert type(result[list(result)]) is pd.DataFrame
