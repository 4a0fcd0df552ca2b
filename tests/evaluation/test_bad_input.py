"""Input that `disclosure()` refuses.

A refusal comes before any work starts, is an InputError that says table and column, and holds no value of
either table: neither in its text, nor in its arguments, nor in an error behind it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest
from support.refusals import refusal

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
    monkeypatch.setattr("disclosure_pipeline.counting.memory.engine.find_in_memory", started)
    yield


def refused(call: Callable[[], object], *expected_texts: str) -> None:
    """The call is refused, with all of `expected_texts` in the message and no value of a table anywhere."""
    message = str(refusal(call, *CANARIES)).lower()
    for text in expected_texts:
        assert text.lower() in message


TABLE, EMPTY = table(), table().iloc[:0]
GOOD: dict[str, Any] = {"gt": TABLE, "sd": TABLE, "keys": KEYS, "targets": "work"}


def measured(**changes: Any) -> dp.Disclosure:
    """`disclosure()` of two good tables, unless others are given."""
    gt, sd, keys, targets = (changes.pop(name, value) for name, value in GOOD.items())
    return dp.disclosure(gt, sd, keys, targets, **changes)


def test_the_tables_as_such_are_accepted() -> None:
    """The base of every refusal below."""
    assert measured(targets=None).targets == ("weight", "work", "income")


def in_one_of_three(change: Callable[[pd.DataFrame], pd.DataFrame], place: int) -> dict[str, Any]:
    """Arguments with one table changed: the ground truth, or one of two synthetic tables."""
    tables = [change(TABLE) if number == place else TABLE for number in range(3)]
    return {"gt": tables[0], "sd": tables[1:]}


def exclude(**exclusions: Any) -> dict[str, Any]:
    return {"exclude": dp.Exclusions(**exclusions)}


PLACES = ("the ground truth", "synthetic table 1", "synthetic table 2")
KINDS: dict[str, Sequence[Any]] = {
    "integers": [1, 2, 3] * 4,
    "floats": [1.0, 2.0, 3.0] * 4,
    "text": ["1", "2", "3"] * 4,
    "true/false": [True, False, True] * 4,
    "dates": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"] * 4).to_list(),
    "durations": pd.to_timedelta([1, 2, 3] * 4, unit="D").to_list(),
}
AS_TEXT = {column: TABLE.astype({column: str}) for column in ("age", "income")}
ZONELESS = pd.Series(pd.date_range("2020-01-01", periods=12))
NOTHING: list[Any] = [[], ()]
MIXED: list[list[Any]] = [["Quetzalcoatl", 48151623], [42.108, "x"], [True, "Kwisatz"], [True, 48151623]]
NO_LEVELS: list[Any] = [["Kwisatz"], {"a": 48151623}, ("Kwisatz", 1), {"Kwisatz"}, b"Kwisatz", 1 + 2j]
NO_LIMITS = [(-1, 90), (50, -1), (50,), (1, 2, 3), (), 50, None, "ab", ("1", "2"), (True, 3), (np.nan, 3)]

REFUSED: dict[str, list[tuple[dict[str, Any], Sequence[str]]]] = {
    "tables": [
        ({"gt": EMPTY}, ("ground truth", "no records")),
        ({"sd": EMPTY}, ("synthetic table", "no records")),
        ({"sd": [TABLE, EMPTY]}, ("synthetic table 2", "no records")),
        ({"gt": pd.DataFrame(index=range(3))}, ()),
        ({"gt": pd.DataFrame()}, ()),
        *(({"sd": nothing}, ("empty", "at least one")) for nothing in NOTHING),
        *(
            ({place: wrong}, ("DataFrame",))
            for wrong in (None, 3, {"sex": [1]}, TABLE["sex"], TABLE.to_numpy())
            for place in ("gt", "sd")
        ),
        *(({"sd": wrong}, ("DataFrame",)) for wrong in ([TABLE, None], [["a"]])),
        ({"sd": "x"}, ("synthetic", "format", ".parquet")),
        ({"gt": "x.csv"}, ("ground truth", "no file 'x.csv'")),
        *(
            ({"engine": engine}, ("engine", "auto", "partitioned"))
            for engine in (None, 3, "", "spark", "Memory", ["memory"])
        ),
        *(
            (
                in_one_of_three(lambda one: pd.concat([one, one[["income", "sex"]]], axis=1), place),
                (name, "'income'", "'sex'", "unique"),
            )
            for place, name in enumerate(PLACES)
        ),
        ({"gt": pd.concat({"a": TABLE}, axis=1)}, ("ground truth", "several levels")),
    ],
    "keys and targets": [
        *(({"keys": keys}, ("keys", "at least one")) for keys in NOTHING),
        *(({"keys": keys}, ("keys must be a list",)) for keys in ("sex", None, 3)),
        ({"keys": ["sex", "age", "sex"]}, ("'sex'", "more than once")),
        ({"targets": ["work", "work"]}, ("'work'", "more than once")),
        ({"targets": []}, ("targets is empty",)),
        ({"gt": TABLE[KEYS], "sd": TABLE[KEYS], "targets": None}, ("target",)),
        ({"sd": TABLE[KEYS], "targets": None}, ("target",)),
        ({"targets": "sex"}, ("'sex'", "key and a target")),
        ({"targets": ["work", "age"]}, ("'age'", "key and a target")),
        *(
            (
                in_one_of_three(lambda one, column=column: one.rename(columns={column: f"{column}s"}), place),  # type: ignore[misc]
                (repr(column), name, f"Did you mean '{column}s'?"),
            )
            for place, name in enumerate(PLACES)
            for column in ("age", "work")
        ),
        ({"sd": TABLE.drop(columns="age")}, ("'age' is not in the synthetic table",)),  # which has no number
        ({"keys": ["sex", "agee"]}, ("'agee'", "the ground truth", "Did you mean 'age'?")),
        ({"targets": "incom"}, ("'incom'", "Did you mean 'income'?")),
        ({"targets": "xyzzy"}, ("'xyzzy'", "'weight'")),
        *(({place: [name]}, ()) for name in (["sex"], {"sex"}, {"a": 1}) for place in ("keys", "targets")),
        *(
            ({place: column}, (place,))  # the values of a column are no names, and are not told
            for name in ("sex", "age", "weight")
            for column in (TABLE[name], TABLE[name].drop_duplicates())
            for place in ("keys", "targets")
        ),
    ],
    "kinds": [
        *(
            (
                {"gt": TABLE.assign(**{column: KINDS[in_gt]}), "sd": TABLE.assign(**{column: KINDS[in_sd]})}
                | {"targets": ["work", "income"]},
                (repr(column), "ground truth", "synthetic table"),
            )
            for in_gt, in_sd in permutations(KINDS, 2)
            if {in_gt, in_sd} != {"integers", "floats"}
            for column in ("age", "income")
        ),
        *(
            case
            for column, sd in AS_TEXT.items()
            for case in (
                ({"sd": sd, "targets": ["income"]}, (repr(column), "numbers", "text")),
                ({"sd": sd.astype({column: "category"}), "targets": ["income"]}, (repr(column), "text")),
                ({"sd": [TABLE, sd], "targets": ["income"]}, ("synthetic table 2",)),
            )
        ),
        *(
            case
            for values in MIXED
            for mixed in [TABLE.assign(work=pd.Series(values * 6, dtype=object))]
            for case in (
                ({"gt": mixed, "sd": mixed}, ("'work'", "ground truth")),
                ({"sd": mixed}, ("'work'", "synthetic table")),
            )
        ),
        *(
            ({"gt": odd, "sd": odd}, ("'work'", "ground truth"))
            for value in NO_LEVELS
            for odd in [TABLE.assign(work=pd.Series([value] * 12, dtype=object))]
        ),
        (
            {"gt": TABLE.assign(work=ZONELESS), "sd": TABLE.assign(work=ZONELESS.dt.tz_localize("UTC"))},
            ("'work'", "time zone"),
        ),
    ],
    "groups": [
        *(
            ({name: {"sex": value}}, ("'sex'", "text", "only numbers"))
            for name, value in (("groups", 3), ("edges", [0, 1, 2]))
        ),
        *(
            ({"gt": both, "sd": both, "groups": {"work": 3}}, ("'work'",))
            for kind in ("dates", "true/false")
            for both in [TABLE.assign(work=KINDS[kind])]
        ),
        *(
            ({"groups": {"age": number}}, ("groups", "'age'", "whole number from 2 to 1,000"))
            for number in (1, 0, -3, 2.0, 2.5, True, "5", None, np.nan, 1001, 10**8, 10**5000)
        ),
        ({"groups": {"income": 3}}, ("'income'", "neither a key nor a target")),
        ({"groups": {"incom": 3}}, ("'incom'", "Did you mean 'income'?")),
        ({"special_values": {"income": [3]}}, ("special_values", "'income'", "neither a key nor a target")),
        ({"edges": {"income": [0, 1, 2]}}, ("edges", "'income'", "neither a key nor a target")),
        ({"within": {"income": 2}}, ("within", "'income'", "not a target")),
        ({"special_values": {"incom": [3]}}, ("'incom'", "Did you mean 'income'?")),
        ({"groups": {"age": 3}, "edges": {"age": [0, 1, 2]}}, ("'age'", "groups", "edges")),
        *(
            ({"edges": {"age": edges}}, ("edges", "'age'"))
            for edges in ([], [1], [1, 2], [1, 3, 2], [1, 1, 2], [1, np.nan, 2], [1, 2, np.inf], "abc", 3)
        ),
        *(
            ({"groups": {"age": 3}, "edges": rule}, ("edges must be one of", "'pooled'"))
            for rule in ("quantiles", "", None, 3, [1, 2, 3], ["pooled"])
        ),
        ({"groups": {"age": TABLE["age"]}}, ("groups", "'age'")),
        ({"groups": {"age": 3}, "edges": TABLE["age"]}, ("edges",)),
        ({"edges": {"age": TABLE["sex"]}}, ("edges", "'age'")),
        ({"edges": {"age": ["Kwisatz", "x", "y"]}}, ("edges", "'age'")),
    ],
    "exclusions and limits": [
        (exclude(target_levels={"work": ["nine to five"]}), ("nine to five", "'work'")),
        # A level of the last target is looked for before the first one is measured.
        (
            exclude(target_levels={"income": [-1]}) | {"targets": ["work", "weight", "income"]},
            ("-1", "'income'"),
        ),
        *(
            (exclude(pairs=[dp.Pair(*pair)]), ("exclude.pairs", f"'{unknown}'"))
            for pair, unknown in (
                (("sex", "other", "work", "none"), "sex"),
                (("sex", "Kwisatz", "work", "other"), "work"),
                (("income", 1000, "work", "none"), "income"),
                (("sex", "Kwisatz", "income", 1000), "income"),
                (("sx", "Kwisatz", "work", "none"), "sx"),
            )
        ),
        (exclude(target_levels={"income": [1000]}), ("exclude.",)),
        (exclude(target_levels={"age": [1]}), ("exclude.",)),
        (exclude(missing_targets=["income"]), ("exclude.",)),
        (exclude(missing_keys=["work"]), ("exclude.",)),
        (exclude(missing_keys=["sx"]), ("exclude.",)),
        *((exclude(target_levels={"work": levels}), ("'work'", "list")) for levels in ("none", 3, None)),
        *((exclude(missing_targets=columns), ("list of columns",)) for columns in ("work", 3, None)),
        *(
            (exclude(count_over=limit), ("count_over", "whole number of at least 0"))
            for limit in (-1, 2.5, 2.0, True, "3", np.nan)
        ),
        *(
            ({"flags": {check: limits}}, (check, "two numbers, 0 or more"))
            for check in ("one_way", "two_way")
            for limits in NO_LIMITS
        ),
    ],
    "arguments of another type": [
        *(({"flags": flags}, ("flags must be a mapping",)) for flags in ((50, 90), 50, 0, "one_way")),
        ({"flags": {"oneway": (50, 90)}}, ("flags has no check 'oneway'",)),
        *(
            ({"groups": groups}, ("groups must be a mapping from column to number of groups",))
            for groups in (5, "age", ["age"], 0, False, [("age", 5)])
        ),
        *(
            ({"special_values": special}, ("special_values must be a mapping from column to a list of",))
            for special in (-8, "age", [-8], 0)
        ),
        *(
            (
                {"special_values": {"income": values}},
                ("special_values of column 'income' must be a list of numbers",),
            )
            for values in (-8, "-8", None, ["-8"], [None], [np.nan], [True], {"a": 1}, b"8")
        ),
        ({"exclude": {}}, ("exclude must be Exclusions",)),
        ({"exclude": False}, ("exclude must be Exclusions",)),
        (exclude(target_levels=[1]), ("exclude.target_levels must be a mapping",)),
        (exclude(pairs=[("sex", "a", "work", "b")]), ("exclude.pairs must be a list",)),
        (exclude(pairs=dp.Pair("sex", 1, "work", 2)), ("exclude.pairs must be a list",)),
    ],
}


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(*case, id=f"{subject} {number}")
        for subject, cases in REFUSED.items()
        for number, case in enumerate(cases)
    ],
)
def test_refused_before_any_work(arguments: dict[str, Any], words: Sequence[str]) -> None:
    refused(lambda: measured(**arguments), *words)


@pytest.mark.usefixtures("no_work")
def test_only_columns_that_are_measured_have_to_be_of_one_kind() -> None:
    with pytest.raises(AssertionError, match="the work started"):
        measured(sd=AS_TEXT["income"], targets="work")


# The other functions


OTHERS: dict[str, Callable[..., object]] = {
    "individual_attribution": dp.individual_attribution,
    "prediction_risk": dp.prediction_risk,
    "disclosure_protection": dp.disclosure_protection,
    "subgroups": partial(dp.subgroups, by="sex"),
    "compare_remedies": partial(dp.compare_remedies, remedies=[dp.Remedy.remove_unique_copies()]),
}


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("function", OTHERS)
def test_what_needs_keys_and_targets_refuses_what_disclosure_refuses(function: str) -> None:
    for subject in ("tables", "keys and targets", "kinds"):
        for arguments, words in REFUSED[subject]:
            gt, sd, keys, targets, *options = (GOOD | arguments).values()
            if targets is not None and not options:
                refused(partial(OTHERS[function], gt, sd, keys, targets), *words)


@pytest.mark.parametrize(
    ("sd", "keys", "words"),
    [
        (EMPTY, KEYS, "no records"),
        ([TABLE, EMPTY], KEYS, "table 2 has no records"),
        ([], KEYS, "empty"),
        (TABLE, [], "keys"),
        (AS_TEXT["age"], KEYS, "'age'"),
    ],
)
def test_replicated_uniques_refuses_what_disclosure_refuses(sd: Any, keys: list[str], words: str) -> None:
    refused(lambda: dp.replicated_uniques(TABLE, sd, keys), words)


def test_unknown_kinds_of_uniques_are_refused() -> None:
    uniques = dp.replicated_uniques(table(), table(), ["income"])
    refused(lambda: uniques.remove("all"), "'all'")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [np.int64(3), np.uint8(3)])
def test_accepts_numpy_integers(number: Any) -> None:
    plain = measured(groups={"age": 3}, exclude=dp.Exclusions(count_over=3))
    result = measured(groups={"age": number}, exclude=dp.Exclusions(count_over=number))
    pd.testing.assert_frame_equal(result.attribute, plain.attribute)
