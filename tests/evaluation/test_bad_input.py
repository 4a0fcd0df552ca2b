"""What `disclosure()` refuses.

A refusal comes before any work starts, is an InputError that says table and column, and holds no value of
either table: neither in its text, nor in its arguments, nor in an error behind it.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest

import disclosure_pipeline as dp

# Values of the tables below that stand for what must never be told.
CANARIES = ("Quetzalcoatl", "Kwisatz", "48151623", "42.108")


def table(records: int = 12) -> pd.DataFrame:
    """A table of text, integers, floats, true/false and dates; every third record has a gap."""
    number = np.arange(records)
    return pd.DataFrame(
        {
            "sex": np.where(number % 2, "Quetzalcoatl", "Kwisatz"),
            "age": 48151623 + number // 2,
            "weight": 42.108 + number % 3,
            "work": np.where(number % 4, "Quetzalcoatl", "none"),
            "income": 1000 + 10 * number,
        }
    )


KEYS = ["sex", "age"]


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The measures may not be reached."""

    def started(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the work started")

    monkeypatch.setattr("disclosure_pipeline.evaluation.counts.combine_keys", started)
    monkeypatch.setattr("disclosure_pipeline.counting.memory.engine.count_in_memory", started)
    yield


def behind(error: BaseException) -> Iterator[BaseException]:
    """An error and all errors behind it."""
    pending, seen = [error], set()
    while pending:
        current = pending.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            pending += [cause for cause in (current.__cause__, current.__context__) if cause is not None]


def refused(call: Callable[[], object], *expected_texts: str) -> dp.InputError:
    """The call is refused, with all of `expected_texts` in the message and no value of a table anywhere."""
    with pytest.raises(dp.InputError) as caught:
        call()
    error = caught.value
    message = str(error)
    for text in expected_texts:
        assert text.lower() in message.lower()
    for cause in behind(error):
        shown = f"{cause} {cause!r} {cause.args!r} {getattr(cause, '__notes__', '')}"
        assert not [canary for canary in CANARIES if canary in shown]
    assert str(pickle.loads(pickle.dumps(error))) == message
    return error


def measured(
    gt: Any = None, sd: Any = None, keys: Any = KEYS, targets: Any = "work", **options: Any
) -> dp.Disclosure:
    """`disclosure()` of two good tables, unless others are given."""
    gt = table() if gt is None else gt
    sd = table() if sd is None else sd
    return dp.disclosure(gt, sd, keys, targets, **options)


def test_the_tables_as_such_are_accepted() -> None:
    """The base of every refusal below."""
    assert measured(targets=None).targets == ("weight", "work", "income")


# Tables


@pytest.mark.usefixtures("no_work")
class TestTables:
    def test_empty_ground_truth(self) -> None:
        refused(lambda: measured(gt=table().iloc[:0]), "ground truth", "no records")

    def test_empty_synthetic_table(self) -> None:
        refused(lambda: measured(sd=table().iloc[:0]), "synthetic table", "no records")

    def test_one_empty_table_of_several(self) -> None:
        refused(lambda: measured(sd=[table(), table().iloc[:0]]), "synthetic table 2", "no records")

    def test_tables_without_columns(self) -> None:
        refused(lambda: measured(gt=pd.DataFrame(index=range(3))))
        refused(lambda: measured(gt=pd.DataFrame()))

    @pytest.mark.parametrize("nothing", [[], ()])
    def test_no_synthetic_table_at_all(self, nothing: Any) -> None:
        refused(lambda: measured(sd=nothing), "empty", "at least one")

    @pytest.mark.parametrize(
        "wrong", [None, 3, {"sex": [1]}, table()["sex"], table().to_numpy(), [table(), None], [["a"]]]
    )
    def test_anything_but_data_frames(self, wrong: Any) -> None:
        refused(lambda: dp.disclosure(table(), wrong, KEYS, "work"), "DataFrame")
        if not isinstance(wrong, list):
            refused(lambda: dp.disclosure(wrong, table(), KEYS, "work"), "DataFrame")

    def test_text_is_the_path_of_a_file(self) -> None:
        refused(lambda: dp.disclosure(table(), "x", KEYS, "work"), "synthetic", "format", ".parquet")
        refused(lambda: dp.disclosure("x.csv", table(), KEYS, "work"), "ground truth", "no file 'x.csv'")

    @pytest.mark.parametrize("engine", [None, 3, "", "spark", "Memory", ["memory"]])
    def test_engines_that_do_not_exist(self, engine: Any) -> None:
        refused(lambda: measured(engine=engine), "engine", "auto", "partitioned")

    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_duplicate_column_names(self, place: int) -> None:
        tables = [table(), table(), table()]
        tables[place] = pd.concat([table(), table()[["income", "sex"]]], axis=1)
        name = ("ground truth", "synthetic table 1", "synthetic table 2")[place]
        refused(lambda: measured(gt=tables[0], sd=tables[1:]), name, "'income'", "'sex'", "unique")

    def test_column_names_of_several_levels(self) -> None:
        stacked = pd.concat({"a": table()}, axis=1)
        refused(lambda: measured(gt=stacked), "ground truth", "several levels")


# Keys and targets


@pytest.mark.usefixtures("no_work")
class TestKeysAndTargets:
    @pytest.mark.parametrize("keys", [[], ()])
    def test_no_keys(self, keys: Any) -> None:
        refused(lambda: measured(keys=keys), "keys", "at least one")

    @pytest.mark.parametrize("keys", ["sex", None, 3])
    def test_keys_that_are_no_list(self, keys: Any) -> None:
        refused(lambda: measured(keys=keys), "keys must be a list")

    def test_duplicate_keys(self) -> None:
        refused(lambda: measured(keys=["sex", "age", "sex"]), "'sex'", "more than once")

    def test_duplicate_targets(self) -> None:
        refused(lambda: measured(targets=["work", "work"]), "'work'", "more than once")

    def test_no_targets(self) -> None:
        refused(lambda: measured(targets=[]), "targets is empty")

    def test_nothing_left_for_a_target(self) -> None:
        only_keys = table()[KEYS]
        refused(lambda: measured(gt=only_keys, sd=only_keys, targets=None), "target")
        refused(lambda: measured(sd=only_keys, targets=None), "target")

    @pytest.mark.parametrize("targets", ["sex", ["work", "age"]])
    def test_a_key_that_is_a_target(self, targets: Any) -> None:
        column = "'sex'" if targets == "sex" else "'age'"
        refused(lambda: measured(targets=targets), column, "key and a target")

    @pytest.mark.parametrize(
        ("place", "name"),
        [(0, "the ground truth"), (1, "synthetic table 1"), (2, "synthetic table 2")],
    )
    @pytest.mark.parametrize("column", ["age", "work"])
    def test_a_column_that_is_missing_from_one_table(self, place: int, name: str, column: str) -> None:
        tables = [table(), table(), table()]
        tables[place] = table().rename(columns={column: f"{column}s"})
        refused(
            lambda: measured(gt=tables[0], sd=tables[1:]), f"{column!r}", name, f"Did you mean '{column}s'?"
        )

    def test_with_one_synthesis_it_has_no_number(self) -> None:
        refused(lambda: measured(sd=table().drop(columns="age")), "'age' is not in the synthetic table")

    def test_close_matches_of_a_misspelled_name(self) -> None:
        refused(lambda: measured(keys=["sex", "agee"]), "'agee'", "the ground truth", "Did you mean 'age'?")
        refused(lambda: measured(targets="incom"), "'incom'", "Did you mean 'income'?")

    def test_a_name_that_is_like_none(self) -> None:
        refused(lambda: measured(targets="xyzzy"), "'xyzzy'", "'weight'")

    @pytest.mark.parametrize("name", [["sex"], {"sex"}, {"a": 1}])
    def test_a_name_that_cannot_be_one(self, name: Any) -> None:
        refused(lambda: measured(keys=[name]))
        refused(lambda: measured(targets=[name]))

    @pytest.mark.parametrize("column", ["sex", "age", "weight"])
    def test_a_column_instead_of_its_name(self, column: str) -> None:
        """Its values are no names, and are not told."""
        refused(lambda: measured(keys=table()[column]), "keys")
        refused(lambda: measured(keys=table()[column].drop_duplicates()), "keys")
        refused(lambda: measured(targets=table()[column]), "targets")
        refused(lambda: measured(targets=table()[column].drop_duplicates()), "targets")


# Kinds


TEXT_AND_NUMBERS: dict[str, Sequence[Any]] = {
    "integers": [1, 2, 3] * 4,
    "floats": [1.0, 2.0, 3.0] * 4,
    "text": ["1", "2", "3"] * 4,
    "true/false": [True, False, True] * 4,
    "dates": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"] * 4).to_list(),
    "durations": pd.to_timedelta([1, 2, 3] * 4, unit="D").to_list(),
}
SAME_KIND = {frozenset({"integers", "floats"})}


@pytest.mark.usefixtures("no_work")
class TestKinds:
    @pytest.mark.parametrize("in_gt", TEXT_AND_NUMBERS)
    @pytest.mark.parametrize("in_sd", TEXT_AND_NUMBERS)
    @pytest.mark.parametrize("column", ["age", "income"])
    def test_columns_of_two_kinds_are_never_compared(self, in_gt: str, in_sd: str, column: str) -> None:
        if in_gt == in_sd or frozenset({in_gt, in_sd}) in SAME_KIND:
            return
        gt, sd = table(), table()
        gt[column], sd[column] = TEXT_AND_NUMBERS[in_gt], TEXT_AND_NUMBERS[in_sd]
        error = refused(lambda: measured(gt=gt, sd=sd, targets=["work", "income"]), f"{column!r}")
        assert "ground truth" in str(error) and "synthetic table" in str(error)

    @pytest.mark.parametrize("column", ["age", "income"])
    def test_numbers_against_numbers_as_text(self, column: str) -> None:
        sd = table().astype({column: str})
        refused(lambda: measured(sd=sd, targets=["income"]), f"{column!r}", "numbers", "text")
        refused(
            lambda: measured(sd=sd.astype({column: "category"}), targets=["income"]), f"{column!r}", "text"
        )
        refused(lambda: measured(sd=[table(), sd], targets=["income"]), "synthetic table 2")

    @pytest.mark.parametrize(
        "values",
        [["Quetzalcoatl", 48151623], [42.108, "x"], [True, "Kwisatz"], [True, 48151623]],
        ids=["text and integers", "floats and text", "true/false and text", "true/false and integers"],
    )
    def test_values_of_two_kinds_in_one_column(self, values: list[Any]) -> None:
        mixed = table().assign(work=pd.Series(values * 6, dtype=object))
        refused(lambda: measured(gt=mixed, sd=mixed), "'work'", "ground truth")
        refused(lambda: measured(sd=mixed), "'work'", "synthetic table")

    @pytest.mark.parametrize(
        "values", [[["Kwisatz"]], [{"a": 48151623}], [("Kwisatz", 1)], [{"Kwisatz"}], [b"Kwisatz"], [1 + 2j]]
    )
    def test_values_that_are_no_levels(self, values: list[Any]) -> None:
        odd = table().assign(work=pd.Series(values * 12, dtype=object))
        refused(lambda: measured(gt=odd, sd=odd), "'work'", "ground truth")

    def test_dates_with_and_without_a_zone(self) -> None:
        naive = pd.Series(pd.date_range("2020-01-01", periods=12))
        refused(
            lambda: measured(
                gt=table().assign(work=naive), sd=table().assign(work=naive.dt.tz_localize("UTC"))
            ),
            "'work'",
            "time zone",
        )

    def test_a_kind_that_another_column_has(self) -> None:
        """Only columns that are measured have to be of one kind."""
        with pytest.raises(AssertionError, match="the work started"):
            measured(sd=table().astype({"income": str}), targets="work")


# Groups


@pytest.mark.usefixtures("no_work")
class TestGroups:
    @pytest.mark.parametrize("options", [{"groups": {"sex": 3}}, {"edges": {"sex": [0, 1, 2]}}])
    def test_groups_for_text(self, options: Any) -> None:
        refused(lambda: measured(**options), "'sex'", "text", "only numbers")

    def test_groups_for_other_kinds(self) -> None:
        for values in (TEXT_AND_NUMBERS["dates"], TEXT_AND_NUMBERS["true/false"]):
            both = table().assign(work=values)
            refused(lambda both=both: measured(gt=both, sd=both, groups={"work": 3}), "'work'")  # type: ignore[misc]

    @pytest.mark.parametrize("number", [1, 0, -3, 2.0, 2.5, True, "5", None, np.nan])
    def test_a_number_of_groups_that_is_none(self, number: Any) -> None:
        refused(lambda: measured(groups={"age": number}), "groups", "'age'", "whole number from 2 on")

    def test_groups_for_a_column_that_is_not_measured(self) -> None:
        refused(lambda: measured(groups={"income": 3}), "'income'", "neither a key nor a target")
        refused(lambda: measured(groups={"incom": 3}), "'incom'", "Did you mean 'income'?")
        refused(lambda: measured(special_values={"incom": [3]}), "'incom'", "Did you mean 'income'?")

    def test_groups_and_edges_for_one_column(self) -> None:
        refused(lambda: measured(groups={"age": 3}, edges={"age": [0, 1, 2]}), "'age'", "groups", "edges")

    @pytest.mark.parametrize("edges", [[], [1], [1, 2], [1, 3, 2], [1, 1, 2], [1, np.nan, 2], [1, 2, np.inf]])
    def test_edges_that_are_none(self, edges: list[float]) -> None:
        refused(lambda: measured(edges={"age": edges}), "edges", "'age'")

    @pytest.mark.parametrize("rule", ["quantiles", "", None, 3, [1, 2, 3]])
    def test_an_unknown_rule(self, rule: Any) -> None:
        refused(lambda: measured(groups={"age": 3}, edges=rule), "edges must be one of", "'pooled'")

    def test_a_column_instead_of_a_number(self) -> None:
        refused(lambda: measured(groups={"age": table()["age"]}), "groups", "'age'")
        refused(lambda: measured(groups={"age": 3}, edges=table()["age"]), "edges")
        refused(lambda: measured(edges={"age": table()["sex"]}), "edges", "'age'")
        refused(lambda: measured(edges={"age": ["Kwisatz", "x", "y"]}), "edges", "'age'")

    def test_infinite_values(self) -> None:
        gt = table().assign(weight=np.inf)
        refused(
            lambda: measured(gt=gt, targets=["work", "weight"], groups={"weight": 3}), "'weight'", "infinite"
        )


# Exclusions and limits


@pytest.mark.usefixtures("no_work")
class TestExclusions:
    def test_an_unknown_target_level(self) -> None:
        levels = {"work": ["nine to five"]}
        refused(lambda: measured(exclude=dp.Exclusions(target_levels=levels)), "nine to five", "'work'")

    def test_an_unknown_level_of_the_last_target(self) -> None:
        """It is found before the first one is measured."""
        exclude = dp.Exclusions(target_levels={"income": [-1]})
        refused(lambda: measured(targets=["work", "weight", "income"], exclude=exclude), "-1", "'income'")

    @pytest.mark.parametrize(
        ("pair", "message"),
        [
            (dp.Pair("sex", "other", "work", "none"), "'sex'"),
            (dp.Pair("sex", "Kwisatz", "work", "other"), "'work'"),
            (dp.Pair("income", 1000, "work", "none"), "'income'"),
            (dp.Pair("sex", "Kwisatz", "income", 1000), "'income'"),
            (dp.Pair("sx", "Kwisatz", "work", "none"), "'sx'"),
        ],
    )
    def test_an_unknown_pair(self, pair: dp.Pair, message: str) -> None:
        refused(lambda: measured(exclude=dp.Exclusions(pairs=[pair])), "exclude.pairs", message)

    @pytest.mark.parametrize(
        "exclude",
        [
            dp.Exclusions(target_levels={"income": [1000]}),
            dp.Exclusions(target_levels={"age": [1]}),
            dp.Exclusions(missing_targets=["income"]),
            dp.Exclusions(missing_keys=["work"]),
            dp.Exclusions(missing_keys=["sx"]),
        ],
    )
    def test_columns_that_are_no_key_or_target(self, exclude: dp.Exclusions) -> None:
        refused(lambda: measured(exclude=exclude), "exclude.")

    @pytest.mark.parametrize("levels", ["none", 3, None])
    def test_levels_that_are_no_list(self, levels: Any) -> None:
        refused(lambda: measured(exclude=dp.Exclusions(target_levels={"work": levels})), "'work'", "list")

    @pytest.mark.parametrize("columns", ["work", 3, None])
    def test_columns_that_are_no_list(self, columns: Any) -> None:
        refused(lambda: measured(exclude=dp.Exclusions(missing_targets=columns)), "list of columns")

    @pytest.mark.parametrize("limit", [-1, 2.5, 2.0, True, "3", np.nan])
    def test_a_limit_that_is_none(self, limit: Any) -> None:
        refused(
            lambda: measured(exclude=dp.Exclusions(count_over=limit)), "count_over", "whole number from 0 on"
        )

    @pytest.mark.parametrize("check", ["one_way", "two_way"])
    @pytest.mark.parametrize(
        "limits",
        [(-1, 90), (50, -1), (50,), (1, 2, 3), (), 50, None, "ab", ("1", "2"), (True, 3), (np.nan, 3)],
    )
    def test_limits_of_the_checks(self, check: str, limits: Any) -> None:
        refused(lambda: measured(**{check: limits}), check, "two numbers from 0 on")


# The other functions


def test_replicated_uniques_refuses_what_disclosure_refuses() -> None:
    refused(lambda: dp.replicated_uniques(table(), table().iloc[:0], KEYS), "no records")
    refused(
        lambda: dp.replicated_uniques(table(), [table(), table().iloc[:0]], KEYS), "table 2 has no records"
    )
    refused(lambda: dp.replicated_uniques(table(), [], KEYS), "empty")
    refused(lambda: dp.replicated_uniques(table(), table(), []), "keys")
    refused(lambda: dp.replicated_uniques(table(), table().astype({"age": str}), KEYS), "'age'")


def test_unknown_kinds_of_uniques_are_refused() -> None:
    uniques = dp.replicated_uniques(table(), table(), ["income"])
    refused(lambda: uniques.remove("all"), "'all'")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [np.int64(3), np.uint8(3)])
def test_whole_numbers_of_numpy_are_whole_numbers(number: Any) -> None:
    plain = measured(groups={"age": 3}, exclude=dp.Exclusions(count_over=3))
    result = measured(groups={"age": number}, exclude=dp.Exclusions(count_over=number))
    pd.testing.assert_frame_equal(result.attribute, plain.attribute)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 5}, "groups must be a mapping"),
        ({"special_values": {"income": -8}}, "special_values of column 'income' must be a list of numbers"),
        ({"exclude": {}}, "exclude must be Exclusions"),
        ({"exclude": False}, "exclude must be Exclusions"),
        ({"exclude": dp.Exclusions(target_levels=[1])}, "exclude.target_levels must be a mapping"),  # type: ignore[arg-type]
        ({"exclude": dp.Exclusions(pairs=[("sex", "a", "work", "b")])}, "exclude.pairs must be a list"),  # type: ignore[list-item]
        ({"exclude": dp.Exclusions(pairs=dp.Pair("sex", 1, "work", 2))}, "exclude.pairs must be a list"),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_another_type(options: dict[str, Any], message: str) -> None:
    refused(lambda: measured(**options), message)
