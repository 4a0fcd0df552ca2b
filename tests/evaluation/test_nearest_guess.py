"""Guessing by the nearest records: against the reference, and against generalized CAP."""

from fractions import Fraction
from random import Random
from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import nearest_guess as reference
from reference.baselines import standard_error
from reference.cap import Record
from support.sampling import examples
from support.small_tables import KEYS, frame, sd2011, tables

import disclosure_pipeline as dp
from disclosure_pipeline.analyses.guesses import draw_equal_sizes
from disclosure_pipeline.measures.frequency import FrequencyTable

NUMBERS = st.sampled_from([0, 1, 2, 3, 7, None])
MIXED = st.lists(
    st.tuples(
        st.tuples(NUMBERS, NUMBERS, st.sampled_from(["x", "y", None])), st.sampled_from(["a", "b", "c", None])
    ),
    min_size=1,
    max_size=9,
)
Mixed = list[tuple[tuple[int | None, int | None, str | None], str | None]]


def mixed_frame(records: Mixed) -> pd.DataFrame:
    rows = [(*q, t) for q, t in records]
    actual = pd.DataFrame(rows, columns=["n1", "n2", "k", "t"], dtype=object)
    return actual.astype({"n1": "Int64", "n2": "Int64"})


def widths(both: list[Mixed], numeric: list[int]) -> list[Fraction | None]:
    def width(k: int) -> Fraction:
        known = [value for table in both for q, _ in table if isinstance(value := q[k], int)]
        return Fraction(max(known) - min(known)) if known else Fraction(0)

    return [width(k) if k in numeric else None for k in range(3)]


@examples(60)
@given(MIXED, MIXED, st.sampled_from([[], [0], [1], [0, 1]]))
def test_the_figures_are_those_of_the_reference(gt: Mixed, sd: Mixed, numeric: list[int]) -> None:
    """Levels agree or not; numbers are nearer the less they differ."""
    sd = (sd * len(gt))[: len(gt)]
    names = [["n1", "n2", "k"][k] for k in numeric]
    assume(all(any(q[k] is not None for q, _ in [*gt, *sd]) for k in numeric))  # else refused
    result = dp.nearest_guess(mixed_frame(gt), mixed_frame(sd), ["n1", "n2", "k"], "t", numeric=names)
    ranges = widths([gt, sd], numeric)
    expected = [reference.outcome(person, sd, ranges) for person in gt]
    others = [reference.outcome(person, [*gt[:i], *gt[i + 1 :]], ranges) for i, person in enumerate(gt)]
    records, row = result.records["t", 1], result.figures.iloc[0]
    assert records["distance"].tolist() == pytest.approx([float(away or 0) for _, _, away in expected])
    assert row["same_keys"] == pytest.approx(100 * fmean(away == 0 for _, _, away in expected))
    for k, (name, of_record) in enumerate((("score", "score"), ("accuracy", "right"))):
        mine, theirs = ([outcome[k] or Fraction(0) for outcome in table] for table in (expected, others))
        assert records[of_record].tolist() == pytest.approx(list(map(float, mine)))
        assert row[name] == pytest.approx(100 * fmean(map(float, mine)))
        assert row[f"{name}_others"] == pytest.approx(100 * fmean(map(float, theirs)))
        assert row[f"{name}_beyond"] == pytest.approx(row[name] - row[f"{name}_others"])
        added = [a - b for a, b in zip(mine, theirs, strict=True)]
        error = standard_error(added, [q for q, _ in gt], len(gt))
        assert row[f"{name}_beyond_se"] == pytest.approx(error, abs=1e-6)


def test_a_copy_is_guessed_and_a_list_of_syntheses_is_taken() -> None:
    gt, sd = sd2011("ground_truth").head(1000), sd2011("synthetic").head(1000)
    other = sd2011("ground_truth").tail(1000)
    keys = ["sex", "age", "region", "placesize"]
    result = dp.nearest_guess(gt, [gt, other, sd.head(300), gt.sample(3000, replace=True)], keys, "depress")
    again = dp.nearest_guess(gt, [gt, other, sd.head(300), gt.sample(3000, replace=True)], keys, "depress")
    assert result.figures.iloc[:3].equals(again.figures.iloc[:3])
    beyond = result.figures["accuracy_beyond"].loc["depress"].to_dict()
    assert beyond[1] > 40 < beyond[4]
    assert abs(beyond[2]) < 6
    assert len(result.records) == 1000
    assert (result.records.index == gt.index).all()
    numeric = dp.nearest_guess(gt, other, keys, "depress", numeric=["age"]).figures
    assert np.isfinite(numeric.to_numpy()).all()
    assert "Percent of GT records" in str(result)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"numeric": "age"}, "must be a list of column names"),
        ({"numeric": ["ill"]}, "which is not a key"),
        ({"numeric": ["sex"]}, "cannot be in numeric"),
        ({"numeric": ["age"], "groups": {"age": 3}}, "is grouped"),
        ({"targets": "sex"}, "key and a target at once"),
    ],
)
def test_refuses_invalid_arguments(wrong: dict[str, object], words: str) -> None:
    gt = pd.DataFrame({"age": [30, 40], "sex": ["f", "m"], "ill": ["y", "n"]})
    arguments: dict[str, object] = {"targets": "ill"} | wrong
    with pytest.raises(dp.InputError, match=words):
        dp.nearest_guess(gt, gt, ["age", "sex"], **arguments)  # type: ignore[arg-type]


def test_one_record_has_no_others() -> None:
    gt = pd.DataFrame({"age": [30], "ill": ["y"]})
    for sd in (gt, pd.concat([gt] * 3)):
        measures = dp.nearest_guess(gt, sd, ["age"], "ill").figures.iloc[0]
        assert (measures["accuracy"], measures["accuracy_others"]) == (100, 0)


@examples(40)
@given(tables(12), tables(12), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter_whatever_the_sizes(
    gt: list[Record], sd: list[Record], random: Random
) -> None:
    def measures(gt: list[Record], sd: list[Record]) -> pd.DataFrame:
        return dp.nearest_guess(frame(gt), frame(sd), KEYS, "t", seed=3).figures

    expected = measures(gt, sd)
    pd.testing.assert_frame_equal(
        measures(random.sample(gt, len(gt)), random.sample(sd, len(sd))), expected, check_exact=True
    )


def test_a_draw_has_the_sizes_that_are_compared_and_only_records_that_are_there() -> None:
    """As many SD records as everybody has others: 3 of 30 beside 4 of GT, and 4 of 9 of GT beside 3 of SD."""
    q, t = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0])
    for d, s, sizes in (([1, 2, 0, 1], [10, 0, 15, 5], (4, 3)), ([4, 2, 3, 0], [1, 0, 0, 2], (4, 3))):
        f = FrequencyTable(
            q, t, np.array(d), np.array(s), np.zeros(4, int), np.zeros(4, int), sum(d), sum(s), 3, 2
        )
        drawn = [draw_equal_sizes(f, np.array([2, 0, 3, 1]), [seed]) for seed in range(300)]
        for cells in drawn:
            assert cells is not None and (cells.N_d, cells.N_s) == sizes
            at = [(cells.q[i], cells.t[i]) for i in range(len(cells.q))]
            whole = {(int(q[i]), int(t[i])): (d[i], s[i]) for i in range(4)}
            assert all(
                cells.d[i] <= whole[cell][0] and cells.s[i] <= whole[cell][1] for i, cell in enumerate(at)
            )
            assert cells.d_q.tolist() == [int(cells.d[cells.q == key].sum()) for key in cells.q]
            assert cells.s_q.tolist() == [int(cells.s[cells.q == key].sum()) for key in cells.q]
        first = [
            int(cells.s[0]) if cells is not None and cells.q[0] == 0 == cells.t[0] else 0 for cells in drawn
        ]
        assert fmean(first) == pytest.approx(sizes[1] * s[0] / sum(s), abs=0.2)
    four = np.ones(4, int)
    assert draw_equal_sizes(FrequencyTable(q, t, four, four, q, q, 4, 4, 3, 2), q, [0]) is None
