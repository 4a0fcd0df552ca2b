"""The CAP family: the printed values, two theorems, and a reference that goes record by record."""

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import cap as reference
from reference.cap import Record
from support.sampling import examples
from support.small_tables import KEYS, TARGET_LEVELS, frame, from_counts, measured, tables

import disclosure_pipeline as dp
from disclosure_pipeline.measures.cap import CAP

pytestmark = pytest.mark.usefixtures("no_guards")

Counts = Sequence[Sequence[int]]

# Baillargeon & Charest 2020, printed tables: rows T1 to T3, columns K1 to K3.
O3 = [[0, 176, 204], [0, 78, 93], [127, 163, 59]]
S_B = [[24, 36, 15], [226, 113, 213], [216, 54, 3]]
S_G = [[129, 137, 99], [2, 131, 147], [91, 111, 53]]
O4 = [[0, 0, 62], [197, 136, 134], [74, 99, 198]]
S_A = [[114, 118, 77], [104, 44, 134], [105, 86, 118]]
S_E = [[67, 97, 153], [37, 114, 101], [169, 14, 148]]


# The printed values


@pytest.mark.parametrize(
    ("original", "synthetic", "average", "predicted"),
    [(O3, S_B, 0.307, None), (O3, S_G, 0.349, None), (O4, S_A, 0.318, 134), (O4, S_E, 0.309, 272)],
    ids=["S_b", "S_g", "S_a", "S_e"],
)
def test_printed_tables(original: Counts, synthetic: Counts, average: float, predicted: int | None) -> None:
    result = measured(from_counts(original), from_counts(synthetic))
    assert result["DCAP"] / 100 == pytest.approx(average, abs=0.0005)
    assert result["CAP_matched"] == result["DCAP"]  # every key is in SD
    if predicted is not None:
        assert result["n_predicted_correctly"] == predicted
        assert result["pct_predicted_correctly"] == 100 * predicted / 900


# Against the reference


A, B, MISSING = ((("1", "1"), level) for level in ("a", "b", None))
THIRDS = [(q, t) for q in (("1", "1"), ("2", "2")) for t in ("a", "b", "c")]


@examples(20)
@example([A, B], [(("2", "2"), "a")], [], False, None)  # nothing in common
@example([A], [A], [], False, None)  # a target of one level cannot be scaled
@example(THIRDS, THIRDS, [], False, None)  # what tells nothing is scaled to exactly 0
@example([A, B, MISSING], [A, B, MISSING], [], False, None)  # equally frequent levels
@example([A, B], [A, A, B], ["a"], False, None)  # an excluded level is guessed all the same
@given(
    tables(),
    tables(),
    st.lists(st.sampled_from(TARGET_LEVELS), max_size=2),
    st.booleans(),
    st.none() | st.integers(1, 3),
)
def test_every_figure_equals_the_reference(
    gt: list[Record], sd: list[Record], levels: list[str | None], missing_keys: bool, limit: int | None
) -> None:
    present = {t for _, t in [*gt, *sd]} | {None}
    levels = [level for level in levels if level in present]
    wanted = dp.Exclusions(target_levels={"t": levels}, missing_keys=missing_keys, count_over=limit)

    def kept(table: list[Record]) -> list[bool]:
        return [
            t not in levels
            and not (missing_keys and None in q)
            and not (limit is not None and table.count((q, t)) > limit)
            for q, t in table
        ]

    result = measured(gt, sd, wanted)
    expected = reference.cap_measures(gt, sd, kept(gt), kept(sd))
    assert {name: result[name] for name in expected} == pytest.approx(expected, rel=0, abs=0, nan_ok=True)
    chance = float(100 * reference.disco_chance(gt, sd, kept(gt)))
    assert result["DiSCO_chance"] == pytest.approx(chance, rel=1e-13)
    assert result["DiSCO_excess"] == result["DiSCO"] - result["DiSCO_chance"]


def test_the_reference_names_every_figure() -> None:
    record: Record = (("1", "1"), "a")
    assert list(reference.cap_measures([record], [record], [True], [True])) == list(CAP.__dataclass_fields__)


# The theorems of Baillargeon & Charest


def every_synthesis(keys: int, levels: int, most: int) -> Iterator[list[Record]]:
    """Every table of up to so many records over these levels."""
    cells: list[Record] = [
        ((f"K{k}", ""), f"T{t}") for k, t in product(range(1, keys + 1), range(1, levels + 1))
    ]
    for size in range(1, most + 1):
        yield from (list(records) for records in combinations_with_replacement(cells, size))


@pytest.mark.parametrize(
    "original",
    [[[2, 1], [1, 3]], [[1, 2], [0, 3]], [[5, 2], [4, 1], [3, 2]], [[4, 1, 3], [2, 2, 5]], [[3, 3], [3, 3]]],
    ids=repr,
)
def test_theorems_2_and_3_by_trying_every_synthesis(original: Counts) -> None:
    gt = from_counts(original)
    every = [frame(sd) for sd in every_synthesis(keys=len(original[0]), levels=len(original), most=3)]
    cap = dp.disclosure(frame(gt), every, KEYS, "t").cap
    assert (cap["min_DCAP"] == cap["DCAP"].min()).all()
    assert (cap["min_CAP_matched"] == cap["CAP_matched"].min()).all()


def test_names_are_unique() -> None:
    """A bound names a figure, whatever frame it is in."""
    gt = frame(from_counts(O3))
    result = dp.disclosure(gt, gt, KEYS, "t")
    names = [*result.identity, *result.attribute, *result.cap]
    assert len(set(names)) == len(names)
