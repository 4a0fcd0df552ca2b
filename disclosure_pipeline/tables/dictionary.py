"""The data dictionary: what each column holds and how its values are written, and violations of that."""

from __future__ import annotations

import datetime
import unicodedata
import zoneinfo
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.levels import level_label
from disclosure_pipeline.tables.messages import listed

Type = Literal[
    "category",
    "ordered category",
    "integer",
    "number",
    "boolean",
    "date",
    "datetime",
    "text identifier",
]
NUMERIC: tuple[Type, ...] = ("integer", "number")
DATES: tuple[Type, ...] = ("date", "datetime")
CATEGORIES: tuple[Type, ...] = ("category", "ordered category")

TIME_UNITS: Mapping[str, int] = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""The units of times, in microseconds."""

TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


def normalize_text(text: str) -> str:
    """Return the text as it is compared: in Unicode form NFC, without outer blanks."""
    return unicodedata.normalize("NFC", text.strip())


def _refuse_outer_blanks(text: str) -> str:
    if text != text.strip():
        raise ValueError("it begins or ends with a blank, which no value does once it is read")
    return normalize_text(text)


ValueText = Annotated[str, AfterValidator(_refuse_outer_blanks)]
"""A value as it stands in a table: outer blanks never matter, nor does its Unicode form."""


class FrozenModel(BaseModel):
    """Plain data that never changes and has no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Level(FrozenModel):
    """One level of a category."""

    level: Annotated[
        ValueText, Field(description="The value that every spelling of it becomes", min_length=1)
    ]
    label: Annotated[str, Field(description="What it means, for a reader")] = ""
    aliases: Annotated[tuple[ValueText, ...], Field(description="Other spellings of the same level")] = ()


class MapTo(FrozenModel):
    """Every value that is none of the levels becomes this one."""

    map_to: Annotated[ValueText, Field(description="One of the levels")]


# Strict, so that `within: yes` is no band of 1.
Size = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class Column(FrozenModel):
    """One column of the data dictionary. An empty field is always missing; `missing_codes` are too."""

    type: Annotated[
        Type,
        Field(
            description="How values are read and compared. A text identifier points at one record: it is "
            "neither key nor target, and no value of it may be in both tables"
        ),
    ]
    description: str = ""
    published: Annotated[
        bool,
        Field(
            description="Whether a column that is neither key nor target is part of a release too. What is "
            "not published is left out of the synthetic tables, and out of what is measured of them"
        ),
    ] = False
    unit: Annotated[
        str,
        Field(
            description="Of the numbers, such as EUR or years. Of times the finest that a synthetic table "
            "may have: day, hour, minute, second, millisecond or microsecond; without it, that of GT"
        ),
    ] = ""
    levels: Annotated[
        tuple[ValueText | Level, ...] | None,
        Field(
            description="Every level that a category may have; of an ordered one, in their order",
            min_length=1,
        ),
    ] = None
    unknown_levels: Annotated[
        Literal["refuse", "keep"] | MapTo,
        Field(
            description="What becomes of a value that is none of the levels; where none are declared, of one "
            "that a synthetic table has and the ground truth lacks"
        ),
    ] = "refuse"
    range: Annotated[
        tuple[float, ...] | tuple[datetime.date, ...] | None,
        Field(
            description="Smallest and largest number, or first and last day, that may occur",
            min_length=2,
            max_length=2,
        ),
    ] = None
    missing_codes: Annotated[
        tuple[str | int | float, ...], Field(description="Values that stand for a missing one")
    ] = ()
    special_values: Annotated[
        tuple[int | float, ...],
        Field(
            description="Codes such as -8 (not applicable): no part of range and groups, levels of their own"
        ),
    ] = ()
    decimals: Annotated[
        int | None,
        Field(
            description="Number of decimals that a number may have; without it, as many as those of GT",
            ge=0,
            le=15,
        ),
    ] = None
    groups: Annotated[
        int | None, Field(description="Number of groups that the numbers are put into", ge=2)
    ] = None
    within: Annotated[
        Size | Mapping[Literal["share", "amount"], Size] | None,
        Field(
            description="Of a target: how near to its value counts as told, instead of groups. Below 1 a "
            "share of the value (0.02), from 1 on an amount (100); {amount: 0.5} says which"
        ),
    ] = None
    date_format: Annotated[
        str | None,
        Field(
            description="How dates are written, such as %d.%m.%Y; without it ISO 8601: 2024-12-31, or "
            "2024-12-31T23:59:59"
        ),
    ] = None
    time_zone: Annotated[
        str | None,
        Field(
            description="The zone of times that are written without an offset, such as Europe/Warsaw. "
            "Without it no time may have an offset or a zone"
        ),
    ] = None
    true_values: Annotated[
        tuple[ValueText | int, ...], Field(description="Spellings of true, instead of true, True, TRUE")
    ] = TRUE
    false_values: Annotated[
        tuple[ValueText | int, ...], Field(description="Spellings of false, instead of false, False, FALSE")
    ] = FALSE

    @property
    def level_names(self) -> tuple[str, ...] | None:
        """The levels without labels and aliases."""
        return None if self.levels is None else tuple(level.level for level in self.described_levels)

    @property
    def described_levels(self) -> tuple[Level, ...]:
        """The levels, each with its label and aliases; none where the levels are not declared."""
        return tuple(level if isinstance(level, Level) else Level(level=level) for level in self.levels or ())

    @property
    def aliases(self) -> dict[str, str]:
        """Other spelling -> level."""
        return {alias: level.level for level in self.described_levels for alias in level.aliases}

    @model_validator(mode="after")
    def _only_what_the_type_has(self) -> Column:
        of_types: tuple[tuple[str, tuple[Type, ...], str], ...] = (
            ("groups", NUMERIC, "numbers"),
            ("within", NUMERIC, "numbers"),
            ("special_values", NUMERIC, "numbers"),
            ("unit", (*NUMERIC, "datetime"), "numbers and times"),
            ("decimals", ("number",), "numbers with decimals"),
            ("range", (*NUMERIC, *DATES), "numbers and dates"),
            ("levels", CATEGORIES, "a category"),
            ("date_format", DATES, "dates"),
            ("time_zone", ("datetime",), "a datetime"),
            ("true_values", ("boolean",), "a boolean"),
            ("false_values", ("boolean",), "a boolean"),
        )
        for name, types, what in of_types:
            declared = getattr(self, name) != type(self).model_fields[name].default
            if declared and self.type not in types:
                verb = "is" if name in {"unit", "range", "within", "date_format", "time_zone"} else "are"
                raise ValueError(f"{name} {verb} for {what}: a column of type {self.type} has none")
        if self.published and self.type == "text identifier":
            raise ValueError("a text identifier is never published")
        if self.type == "ordered category" and self.levels is None:
            raise ValueError("an ordered category needs its levels, in their order")
        both = {level_label(code) for code in self.missing_codes} & {
            level_label(value) for value in self.special_values
        }
        if both:
            raise ValueError(f"{listed(sorted(both))} cannot be a missing code and a special value at once")
        if self.type == "datetime" and self.unit and self.unit not in TIME_UNITS:
            raise ValueError(f"unit of times must be one of {', '.join(TIME_UNITS)}, not {self.unit!r}")
        self._check_range()
        self._check_levels()
        self._check_spellings()
        return self

    def _check_range(self) -> None:
        if self.range is None:
            return
        low, high = self.range
        if isinstance(low, float) is not (self.type in NUMERIC):  # two of one type
            expected = "numbers" if self.type in NUMERIC else "days such as 2024-12-31"
            raise ValueError(f"range of a column of type {self.type} must be two {expected}")
        if not low <= high:  # type: ignore[operator]
            raise ValueError("range must be [smallest, largest]")

    def _check_levels(self) -> None:
        names = self.level_names
        if names is None:
            if isinstance(self.unknown_levels, MapTo):
                raise ValueError("unknown_levels maps to one of the levels: declare levels")
            if self.unknown_levels == "keep" and self.type not in CATEGORIES:
                raise ValueError(f"unknown_levels is for a category: a column of type {self.type} has none")
            return
        spellings = [*names, *(alias for level in self.described_levels for alias in level.aliases)]
        twice = sorted({name for name in spellings if spellings.count(name) > 1})
        if twice:
            raise ValueError(f"levels and aliases name {listed(twice)} more than once")
        codes = [code for code in map(str, self.missing_codes) if code in spellings]
        if codes:
            raise ValueError(f"{listed(codes)} cannot be a level and a missing code at once")
        if isinstance(self.unknown_levels, MapTo) and self.unknown_levels.map_to not in names:
            raise ValueError(f"unknown_levels maps to {self.unknown_levels.map_to!r}, which is no level")

    def _check_spellings(self) -> None:
        if self.date_format is not None and ("%" not in self.date_format or "%Z" in self.date_format):
            raise ValueError(f"date_format {self.date_format!r} is no format: use %Y, %m, %d, %H, %M, %S, %z")
        if self.time_zone is not None:
            try:
                zoneinfo.ZoneInfo(self.time_zone)
            except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
                raise ValueError(f"time_zone {self.time_zone!r} is no time zone") from None
        true, false = set(map(str, self.true_values)), set(map(str, self.false_values))
        if not true or not false:
            raise ValueError("true_values and false_values need a spelling each")
        if true & false:
            raise ValueError(f"{listed(sorted(true & false))} cannot be true and false at once")


Dictionary = Mapping[str, Column]


@dataclass(frozen=True)
class Violation:
    """A rule that a table breaks: by how many of its records, and what share of them (0 to 1).

    None where the number is withheld, since it would answer a question about GT.
    """

    table: str
    column: str
    rule: str
    records: int | None = None
    share: float | None = None

    def __str__(self) -> str:
        if self.records is None:
            return self.without_numbers
        return f"{self.without_numbers} ({self.records} records, {self.share:.2%})"

    @property
    def without_numbers(self) -> str:
        """Return the violation without a number of records, for those who may not see numbers of GT."""
        return f"{self.table}, column {self.column!r}: {self.rule}"


class ContractError(InputError):
    """A table breaks its contract; `violations` say where and how often."""

    def __init__(self, violations: Collection[Violation]) -> None:
        super().__init__("; ".join(map(str, violations)))
        self.violations = tuple(violations)

    def __reduce__(self) -> tuple[type[ContractError], tuple[tuple[Violation, ...]]]:
        return (ContractError, (self.violations,))


@dataclass(frozen=True)
class Contract:
    """The demands on a table: values as the dictionary describes them, and every needed column.

    `table` is its name in messages. With `only_known` it has no column that the dictionary lacks.
    """

    dictionary: Dictionary
    table: str
    needed: Collection[str]
    only_known: bool
