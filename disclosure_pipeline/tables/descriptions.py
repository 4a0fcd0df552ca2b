"""Descriptions of columns that come with a table: labels of values, missing codes, types and ranges."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from disclosure_pipeline.tables.dictionary import CATEGORIES, Type, normalize_text
from disclosure_pipeline.tables.levels import level_label
from disclosure_pipeline.tables.messages import listed

Code = str | int | float

MOST_LABELS = 50
"""The most labels of a column that become levels: more would be too many lines to check."""

_MOST_CODES = 100  # in a range of missing codes that is written code by code


@dataclass(frozen=True)
class Description:
    """The description of a column by a file: `entries` of the dictionary's column, as far as they are known.

    Its type is the first of `types` unless the values fit another of them better; without any, their own.
    `labels` are meanings of single values, which `is_ordered` if they have an order. Values in
    `missing_ranges` (lowest, highest) are missing, too. `notes` are for the reader of a draft.
    """

    entries: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[Code, str] = field(default_factory=dict)
    is_ordered: bool = False
    missing_ranges: Sequence[tuple[float, float]] = ()
    types: tuple[Type, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def missing_codes(self) -> tuple[Code, ...]:
        """The codes of missing values: declared, labelled within a range, or all of a short range."""
        codes = [*self.entries.get("missing_codes", ())]
        for low, high in self.missing_ranges:
            if high - low < _MOST_CODES and float(low).is_integer():
                codes += range(int(low), int(high) + 1)
            codes += [code for code in self.labels if isinstance(code, (int, float)) and low <= code <= high]
        return tuple(dict.fromkeys(codes))

    def complete(self, other: Description) -> Description:
        """Return the description, with what it leaves open as `other` has it."""
        own = {name: value for name, value in vars(self).items() if value}
        return replace(other, **{**own, "entries": {**other.entries, **self.entries}})

    def apply_labels(self, present: Collection[Code], are_numbers: bool) -> tuple[dict[str, Any], list[str]]:
        """Return the entries that follow from the labels, and notes on them.

        `present` are the values that occur and are not missing. If all of them have labels, these are the
        levels of a category. Otherwise `are_numbers` makes them numbers, whose labelled codes are special
        values unless they continue the other numbers, as the ends of a scale do.
        """
        missing = set(map(level_label, self.missing_codes))
        labels = {
            code: normalize_text(label)
            for code, label in self.labels.items()
            if level_label(code) not in missing
        }
        known = {*map(level_label, labels), *labels.values()}
        others = [value for value in present if level_label(value) not in known]
        are_some = bool(others) and are_numbers
        is_category = not self.types or bool(set(self.types) & set(CATEGORIES))
        if not labels or not (is_category or are_some):
            return {}, []
        if are_some:
            numbers = [float(value) for value in others]
            of_numbers = [code for code in labels if _is_number(code)]
            special = tuple(
                code for code in of_numbers if not min(numbers) - 1 <= float(code) <= max(numbers) + 1
            )
            are_whole = all(float(value).is_integer() for value in present)
            numeric = {"type": "integer" if are_whole else "number"} if is_category else {}
            notes = ["labels of texts are left out, as the values are numbers"] * (
                len(of_numbers) < len(labels)
            )
            return {**numeric, "special_values": special}, notes
        if others or len(labels) > MOST_LABELS:
            why = "some values have no label" if others else f"more than {MOST_LABELS} values have labels"
            return {"type": "category"}, [f"{why}: {_STAY}"]
        kind = "ordered category" if self.is_ordered else "category"
        texts = {normalize_text(level_label(code)): label for code, label in labels.items()}
        occurring = dict.fromkeys(normalize_text(level_label(value)) for value in present)
        if collision := _describe_collision(texts, {normalize_text(code) for code in missing}, occurring):
            levels = [{"level": code, "label": label} for code, label in texts.items()]
            levels += [{"level": value} for value in occurring if value not in texts]
            return {"type": kind, "levels": levels}, [f"{collision}: {_STAY}"]
        named = [
            label if label == code else {"level": label, "aliases": [code]} for code, label in texts.items()
        ]
        return {"type": kind, "levels": named}, []


def _is_number(code: Code) -> bool:
    try:
        return math.isfinite(float(code))
    except ValueError:
        return False


_STAY = "its levels are the values themselves"


def _describe_collision(
    labels: Mapping[str, str], missing: Collection[str], occurring: Collection[str]
) -> str:
    """Return why labels by code would make two values one, or an empty text if they do not."""
    texts = list(labels.values())
    if twice := sorted({label for label in texts if texts.count(label) > 1}):
        return f"several values have the label {listed(twice)}"
    if also_codes := [
        label
        for code, label in labels.items()
        if label != code
        and (label in labels or label in missing or (label in occurring and code in occurring))
    ]:
        return f"the label {listed(also_codes)} is also a value"
    return "a value has an empty label" if "" in texts else ""
