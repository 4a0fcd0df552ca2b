"""The data dictionary: what each column holds and how its values are written, and violations of it."""

from __future__ import annotations

import datetime
import re
import unicodedata
import zoneinfo
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pandas as pd
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails

from disclosure_pipeline.errors import InputError, write_count
from disclosure_pipeline.tables.grouping import MOST_GROUPS
from disclosure_pipeline.tables.levels import level_label
from disclosure_pipeline.tables.messages import listed, suggest_names

if TYPE_CHECKING:
    from pydantic.functional_validators import ModelWrapValidatorHandler
    from pydantic_core import ErrorDetails
    from typing_extensions import Self

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
    """Return the text in the form that is compared: in Unicode form NFC, without outer blanks."""
    return unicodedata.normalize("NFC", text.strip())


def _refuse_outer_blanks(text: str) -> str:
    if text != text.strip():
        raise ValueError("it begins or ends with a blank, which is removed from values when they are read")
    return normalize_text(text)


ValueText = Annotated[str, AfterValidator(_refuse_outer_blanks)]
"""A value of a table; neither outer blanks nor its Unicode form matter."""

LONGEST_LABEL = 40
"""The most characters of a column's label."""


def refuse_entry(entry: tuple[str | int, ...], problem: str) -> ValidationError:
    """Return the error for one entry inside a model, given by its path from that model."""
    # pydantic keeps the path of an error that a validator raises, and puts the model's own before it.
    return ValidationError.from_exception_data("entry", [_write_problem(entry, problem)])


def _write_problem(entry: tuple[str | int, ...], problem: str) -> InitErrorDetails:
    # Dagster writes errors anew, for which their types have to be pydantic's own.
    return InitErrorDetails(type="value_error", loc=entry, input=None, ctx={"error": ValueError(problem)})


@contextmanager
def at_entry(*entry: str | int) -> Iterator[None]:
    """Give a ValueError that is raised in the block the path of an entry, from the model that validates."""
    try:
        yield
    except ValidationError:
        raise
    except ValueError as error:
        problem = str(error)
    else:
        return
    raise refuse_entry(entry, problem)


NO_ENTRY = "there is no such entry"


class FrozenModel(BaseModel):
    """Plain data that never changes and has no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _suggest_fields(cls, content: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(content)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            if not any(map(_is_unknown_field, problems)):
                raise
        raise ValidationError.from_exception_data(
            cls.__name__,
            [
                InitErrorDetails(type="missing", loc=problem["loc"], input=None)
                if problem["type"] == "missing"
                else _write_problem(problem["loc"], cls._describe(problem))
                for problem in problems
            ],
        )

    @classmethod
    def _describe(cls, problem: ErrorDetails) -> str:
        if not _is_unknown_field(problem):
            return describe_problem(problem)
        suggestion = suggest_names(problem["loc"][0], cls.model_fields, "Possible are")
        return f"{NO_ENTRY}. {suggestion}"


def describe_problem(problem: ErrorDetails) -> str:
    """Return the message of a problem without pydantic's own first words."""
    return problem["msg"].removeprefix("Value error, ")


def _is_unknown_field(problem: ErrorDetails) -> bool:
    return problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1


class Level(FrozenModel):
    """One level of a category."""

    level: Annotated[
        ValueText, Field(description="The value that replaces every spelling of it", min_length=1)
    ]
    label: Annotated[str, Field(description="Its meaning, for readers")] = ""
    aliases: Annotated[tuple[ValueText, ...], Field(description="Other spellings of the same level")] = ()


class MapTo(FrozenModel):
    """Every value that is not among the levels becomes this one."""

    map_to: Annotated[ValueText, Field(description="One of the levels")]


# Strict, so that `within: yes` is not a band of 1.
Size = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class Column(FrozenModel):
    """One column of the data dictionary. Empty fields are always missing, and so are `missing_codes`."""

    type: Annotated[
        Type,
        Field(
            description="How values are read and compared. A text identifier identifies a record: it is "
            "neither key nor target, and no value may be in both tables"
        ),
    ]
    label: Annotated[
        ValueText,
        Field(
            description="One or two words for the column, such as work abroad, that the page and its "
            "sentences use instead of its name",
            max_length=LONGEST_LABEL,
        ),
    ] = ""
    description: str = ""
    published: Annotated[
        bool,
        Field(
            description="Whether a column that is neither key nor target is part of a release, too. Columns "
            "that are not published are left out of the synthetic tables and are not measured"
        ),
    ] = False
    unit: Annotated[
        str,
        Field(
            description="The unit of numbers, such as EUR or years. For times, the finest unit that a "
            "synthetic table may have (day, hour, minute, second, millisecond or microsecond); by default "
            "that of the ground truth. Numbers without a unit may not have leading zeros in the ground "
            "truth, as codes do"
        ),
    ] = ""
    levels: Annotated[
        tuple[ValueText | Level, ...] | None,
        Field(
            description="Every level that a category may have; for an ordered category, in their order",
            min_length=1,
        ),
    ] = None
    unknown_levels: Annotated[
        Literal["refuse", "keep"] | MapTo,
        Field(
            description="What to do with a value that is not among the levels or, if none are declared, with "
            "a value of a synthetic table that the ground truth lacks"
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
    real_values: Annotated[
        Literal["refuse", "keep"],
        Field(
            description="Whether real values of a column may be published in which nearly every record of "
            "the ground truth has a value of its own, as an identifier does. By default a synthetic table "
            "with more of them than by chance is not approved"
        ),
    ] = "refuse"
    missing_codes: Annotated[
        tuple[str | int | float, ...], Field(description="Values that mean missing")
    ] = ()
    special_values: Annotated[
        tuple[int | float, ...],
        Field(description="Codes such as -8 (not applicable): levels of their own, outside range and groups"),
    ] = ()
    decimals: Annotated[
        int | None,
        Field(
            description="The most decimals that a number may have; by default as many as in the ground truth",
            ge=0,
            le=15,
        ),
    ] = None
    groups: Annotated[
        int | None, Field(description="The number of groups for the numbers", ge=2, le=MOST_GROUPS)
    ] = None
    within: Annotated[
        Size | Mapping[Literal["share", "amount"], Size] | None,
        Field(
            description="For a target, instead of groups: how near to its value counts as disclosed. Below 1 "
            "a share of the value (0.02), from 1 on an amount (100); {amount: 0.5} says which"
        ),
    ] = None
    sensitive: Annotated[
        tuple[ValueText | bool, ...],
        Field(
            description="For a target, the levels of which it matters who has them, such as [positive]. The "
            "bounds of the target also hold among the people with each of them"
        ),
    ] = ()
    date_format: Annotated[
        str | None,
        Field(
            description="The form of dates, such as %d.%m.%Y; by default ISO 8601: 2024-12-31, or "
            "2024-12-31T23:59:59"
        ),
    ] = None
    time_zone: Annotated[
        str | None,
        Field(
            description="The zone of times without an offset, such as Europe/Warsaw. Without it, no time may "
            "have an offset or a zone"
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
        """The levels with their labels and aliases; none if no levels are declared."""
        return tuple(level if isinstance(level, Level) else Level(level=level) for level in self.levels or ())

    @property
    def aliases(self) -> dict[str, str]:
        """Other spelling -> level."""
        return {alias: level.level for level in self.described_levels for alias in level.aliases}

    @model_validator(mode="after")
    def _check_fields(self) -> Column:
        fields: tuple[tuple[str, tuple[Type, ...], str], ...] = (
            ("groups", NUMERIC, "numbers"),
            ("within", NUMERIC, "numbers"),
            ("special_values", NUMERIC, "numbers"),
            ("unit", (*NUMERIC, "datetime"), "numbers and times"),
            ("decimals", ("number",), "numbers with decimals"),
            ("range", (*NUMERIC, *DATES), "numbers and dates"),
            ("levels", CATEGORIES, "a category"),
            ("sensitive", (*CATEGORIES, "boolean"), "a category or boolean"),
            ("real_values", (*NUMERIC, *DATES, *CATEGORIES, "boolean"), "a column that may be published"),
            ("date_format", DATES, "dates"),
            ("time_zone", ("datetime",), "a datetime"),
            ("true_values", ("boolean",), "a boolean"),
            ("false_values", ("boolean",), "a boolean"),
        )
        for name, types, what in fields:
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
        self._check_sensitive()
        return self

    @property
    def sensitive_levels(self) -> tuple[str, ...]:
        """The sensitive levels as they stand in tables."""
        return tuple(map(level_label, self.sensitive))

    def _check_sensitive(self) -> None:
        declared = self.level_names
        for level in self.sensitive:
            if self.type == "boolean":
                if not isinstance(level, bool):
                    raise ValueError("sensitive levels of a boolean are true and false, without quotes")
            elif isinstance(level, bool):
                raise ValueError(f"sensitive level {level} is no text: write it in quotes")
            elif declared is not None and level not in declared:
                raise ValueError(
                    f"sensitive names {level!r}, which is not a level. {suggest_names(level, declared)}"
                )
        twice = sorted({level for level in self.sensitive_levels if self.sensitive_levels.count(level) > 1})
        if twice:
            raise ValueError(f"sensitive names {listed(twice)} more than once")

    def _check_range(self) -> None:
        if self.range is None:
            return
        low, high = self.range
        if isinstance(low, float) is not (self.type in NUMERIC):
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
        codes = [code for code in map(level_label, self.missing_codes) if code in spellings]
        if codes:
            raise ValueError(f"{listed(codes)} cannot be a level and a missing code at once")
        if isinstance(self.unknown_levels, MapTo) and self.unknown_levels.map_to not in names:
            raise ValueError(f"unknown_levels maps to {self.unknown_levels.map_to!r}, which is not a level")

    def _check_spellings(self) -> None:
        if self.date_format is not None and not _is_date_format(self.date_format):
            raise ValueError(
                f"date_format {self.date_format!r} is not a format: use %Y, %m, %d, %H, %M, %S, %z"
            )
        if self.time_zone is not None:
            try:
                zoneinfo.ZoneInfo(self.time_zone)
            except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
                raise ValueError(f"time_zone {self.time_zone!r} is not a time zone") from None
        true, false = set(map(str, self.true_values)), set(map(str, self.false_values))
        if not true or not false:
            raise ValueError("true_values and false_values need at least one spelling each")
        if true & false:
            raise ValueError(f"{listed(sorted(true & false))} cannot be true and false at once")
        codes = (true | false).intersection(map(level_label, self.missing_codes))
        if codes and self.type == "boolean":
            raise ValueError(f"{listed(sorted(codes))} cannot be true or false and a missing code at once")


def _is_date_format(text: str) -> bool:
    """Return whether pandas, which reads dates by formats, knows all directives of a text with some.

    >>> _is_date_format("%d.%m.%Y"), _is_date_format("%-d.%m.%Y"), _is_date_format("dd.mm.yyyy")
    (True, False, False)
    """
    try:
        pd.to_datetime(pd.Series([None], dtype=object), format=text)
    except (ValueError, re.error):
        return False
    return "%" in text and "%Z" not in text


Dictionary = Mapping[str, Column]


@dataclass(frozen=True)
class Violation:
    """A rule that a table breaks, with the number and the share (0 to 1) of the records that break it.

    Both are None if they are withheld, since they would disclose something about GT.
    """

    table: str
    column: str
    rule: str
    records: int | None = None
    share: float | None = None

    def __str__(self) -> str:
        if self.records is None:
            return self.without_numbers
        return f"{self.without_numbers} ({write_count(self.records, 'record')}, {self.share:.2%})"

    @property
    def without_numbers(self) -> str:
        """The violation without the number of records, for readers who may not see numbers of GT."""
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
    """The requirements for a table: values as the dictionary describes them, and every needed column.

    `table` is its name in messages. With `only_known`, it must not have columns that the dictionary lacks.
    """

    dictionary: Dictionary
    table: str
    needed: Collection[str]
    only_known: bool
