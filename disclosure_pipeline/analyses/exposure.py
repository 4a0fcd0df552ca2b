"""`exposure()`: figures of every key set, and the sizes of the smallest sets that expose records."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import Any

import pandas as pd

from disclosure_pipeline.analyses.exposure_counts import ExposureFigures
from disclosure_pipeline.analyses.exposure_search import Search, SetFigures, estimate_seconds, search_key_sets
from disclosure_pipeline.analyses.key_set_tree import (
    MOST_COLUMNS,
    ExposedRecords,
    ExposureTarget,
    KeySetColumn,
    Synthesis,
)
from disclosure_pipeline.analyses.key_sets import join_names
from disclosure_pipeline.counting.counts import mark_unguessable
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import read_frames
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import require_whole_number
from disclosure_pipeline.evaluation.frames import format_frame
from disclosure_pipeline.evaluation.resemblance import find_doubts, identifier_warnings, warn_of_doubts
from disclosure_pipeline.measures.baselines import standard_error
from disclosure_pipeline.measures.copies import unique_hits
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.exposure import DrawChances
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.runtime.progress import ignore_progress, show_progress
from disclosure_pipeline.tables.alignment import Tables, check_names, check_tables
from disclosure_pipeline.tables.grouping import Edges, Grouping, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import describe_argument
from disclosure_pipeline.tables.sources import Syntheses, TableSource

_SHOWN = 10


@dataclass(frozen=True, repr=False, eq=False)
class Exposure:
    """Disclosure by each set of columns beyond other people's records, the largest DiSCO_beyond first.

    `figures`: index (keys, target, synthesis), where `keys` is text such as "age, sex". `columns`: the size
    of the set. Percent of GT records: repU, DiSCO, DiSCO_others. Percentage points: DiSCO_beyond,
    guessed_beyond, and unique_hits_beyond (of the SD records). smallest_support: the smallest number of SD
    records that agree on a disclosed GT record, missing if none is disclosed.

    `smallest_sets`: index (target, synthesis, columns), percent of GT records by the size of the smallest set
    that exposes them: `exposed` by SD, `exposed_others` by the other GT records; the row "none" has the
    records that no set exposes.

    `key_sets`: the names of every set, in the order of `figures`. `warnings`: reasons to doubt the figures,
    such as tables that are not coded alike.
    """

    targets: tuple[Any, ...]
    up_to: int
    support: int
    key_sets: tuple[tuple[Any, ...], ...]
    figures: pd.DataFrame
    smallest_sets: pd.DataFrame
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [*(f"Warning: {warning}" for warning in self.warnings)]
        sets = self.figures.index.get_level_values("keys").nunique()
        lines += [f"{sets:,} key sets; those with the largest DiSCO_beyond:", ""]
        lines += [format_frame(self.figures.head(_SHOWN)), ""]
        lines += [
            f"Percent of GT records by the smallest set that exposes them (support {self.support}):",
            "",
        ]
        lines += [format_frame(self.smallest_sets)]
        return "\n".join(lines)

    __repr__ = __str__


def _check_arguments(
    ground_truth: Any, synthetic: Any, keys: Any, targets: Any, grouping: Grouping
) -> tuple[Tables, tuple[Any, ...], tuple[Any, ...]]:
    """Return the tables, and the names of the keys and of the targets, which may overlap."""
    if targets is None:
        raise InputError("targets is None: name the column or columns an intruder wants to learn.")
    frames = read_frames(ground_truth, synthetic, grouping.numeric)
    known = [list(frame.columns) for frame in frames]
    several = isinstance(keys, Sequence) and not isinstance(keys, str)
    others = [name for name in keys if not _is_among(name, targets)] if several else keys
    if several and not others:
        raise InputError("keys contains only targets: add columns an intruder may know.")
    _, target_names = check_names(known, others, targets, grouping_of())
    names, _ = check_names(known, keys, (), grouping_of())
    no_keys = [name for name in target_names if name not in names]
    if not target_names:
        raise InputError("targets is empty: name at least one column.")
    return check_tables(frames[0], frames[1:], names, no_keys, grouping), names, target_names


def _is_among(name: Any, targets: Any) -> bool:
    return bool(name in targets) if isinstance(targets, (list, tuple)) else bool(name == targets)


MINUTES = 10.0
NONE = "none"


def exposure(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Hashable | Sequence[Hashable],
    *,
    up_to: int = 4,
    support: int = 1,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    minutes: float = MINUTES,
    progress: bool = False,
) -> Exposure:
    """Measure disclosure by every set of at most `up_to` columns, compared with other people's records.

    A set exposes a GT record if all SD records that agree with it in the set, at least `support` of them,
    have its own target level. A larger set may no longer expose it, so every set is measured.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        keys: The columns of which an intruder may know some.
        targets: The column or columns an intruder wants to learn. A target may be among the keys: it is then
            measured by the sets without it.
        up_to: The largest number of columns in a set, at most 32.
        support: The smallest number of SD records (for the others: of other GT records) that must agree.
        groups: As in `disclosure()`.
        special_values: As in `disclosure()`.
        edges: As in `disclosure()`.
        minutes: The longest time; a search that would take longer on the free cores of this machine, as
            estimated from a few sets, is refused before it starts.
        progress: As in `disclosure()`.

    Returns:
        Figures of every set, sorted by DiSCO_beyond, and how many GT records the smallest sets expose: see
        `Exposure`. The largest of many figures is high by chance alone: compare `exposed` with
        `exposed_others`.

    Raises:
        InputError: As in `disclosure()`; or the search would take longer than `minutes`.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": [30, 30, 40, 50], "sex": list("ffmm"), "ill": list("ynyn")})
        >>> sd = pd.DataFrame({"age": [30, 40, 40, 60], "sex": list("fmfm"), "ill": list("yyyn")})
        >>> exposure = dp.exposure(gt, sd, ["age", "sex"], "ill", up_to=2)
        >>> exposure.figures[["DiSCO", "DiSCO_others", "smallest_support"]]
                                   DiSCO  DiSCO_others  smallest_support
        keys     target synthesis
        age      ill    1           50.0           0.0                 1
        sex      ill    1           25.0           0.0                 2
        age, sex ill    1           50.0           0.0                 1
        >>> exposure.smallest_sets["exposed"]
        target  synthesis  columns
        ill     1          1          50.0
                           2           0.0
                           none       50.0
        Name: exposed, dtype: float64

    Source: this project's own. Its kin: minimal sample uniques and SUDA (Elliot, Manning & Ford 2002, "A
    computational algorithm for handling the special uniques problem"), which ask for uniqueness only, and
    jumping emerging patterns (Dong & Li 1999, "Efficient mining of emerging patterns").
    """
    require_whole_number("up_to", up_to, 1, MOST_COLUMNS)
    require_whole_number("support", support, 1)
    if isinstance(minutes, bool) or not isinstance(minutes, Real) or not minutes > 0:
        raise InputError(f"minutes must be a number above 0, not {describe_argument(minutes)}.")
    tables, names, target_names = _check_arguments(
        ground_truth, synthetic, keys, targets, grouping_of(groups, special_values, edges)
    )
    search, coded = _prepare(tables, names, target_names, min(up_to, len(names)), support)
    needed = estimate_seconds(search)
    if needed > 60 * minutes:
        raise InputError(
            f"{search.sets:,} key sets would take about {math.ceil(needed / 60):,} minutes on this machine; "
            f"minutes={minutes:g} allows less. Use fewer columns or targets, a smaller up_to, groups for "
            "columns with many levels, or allow more minutes."
        )
    with show_progress() if progress else nullcontext(ignore_progress) as on_progress:
        set_figures, exposed = search_key_sets(search, on_progress)
    doubts = find_doubts(tables, coded)
    warn_of_doubts(doubts)
    figures, key_sets = _frame_figures(set_figures, search, names, target_names)
    return Exposure(
        targets=target_names,
        up_to=int(search.up_to),
        support=int(support),
        key_sets=key_sets,
        figures=figures,
        smallest_sets=_frame_smallest_sets(exposed, search, target_names),
        warnings=(*doubts, *identifier_warnings(FramesInMemory(tables.frames, "memory"), coded)),
    )


def _prepare(
    tables: Tables,
    names: tuple[Any, ...],
    target_names: tuple[Any, ...],
    up_to: int,
    support: int,
) -> tuple[Search, list[CodedColumn]]:
    measured = list(dict.fromkeys((*names, *target_names)))
    coded = dict(zip(measured, tables.code(measured), strict=True))
    order = sorted(range(len(names)), key=lambda k: -coded[names[k]].size)
    N_d, *N_s = (len(frame) for frame in tables.frames)
    syntheses = tuple(
        Synthesis(table, sizes, DrawChances.for_sizes(sizes))
        for table, sizes in enumerate((Sizes(N_d, records) for records in N_s), start=1)
    )
    positions = {names[k]: position for position, k in enumerate(order)}
    search = Search(
        columns=tuple(_convert_column(coded[names[k]]) for k in order),
        place=tuple(order),
        targets=tuple(
            ExposureTarget.from_column(
                _convert_column(coded[name]), mark_unguessable(coded[name]), positions.get(name), syntheses
            )
            for name in target_names
        ),
        syntheses=syntheses,
        records=(N_d, *N_s),
        up_to=up_to,
        support=int(support),
    )
    return search, list(coded.values())


def _convert_column(column: CodedColumn) -> KeySetColumn:
    return KeySetColumn(column.codes, column.size)


def _frame_figures(
    set_figures: Sequence[SetFigures], search: Search, names: tuple[Any, ...], targets: tuple[Any, ...]
) -> tuple[pd.DataFrame, tuple[tuple[Any, ...], ...]]:
    rows: dict[tuple[tuple[Any, ...], Any, int], dict[str, Any]] = {}
    for figures_of_set in set_figures:
        keys = tuple(names[k] for k in sorted(search.place[k] for k in figures_of_set.columns))
        for i, synthesis in enumerate(search.syntheses):
            sizes = synthesis.sizes
            hits = unique_hits(figures_of_set.hits[i], sizes)
            identity = {
                "columns": len(keys),
                "repU": percent(figures_of_set.repU[i], sizes.N_d),
                "unique_hits_beyond": hits.unique_hits_beyond,
                "unique_hits_beyond_se": hits.unique_hits_beyond_se,
            }
            for t, by_synthesis in figures_of_set.targets.items():
                rows[keys, targets[t], i + 1] = identity | _name_figures(by_synthesis[i], sizes)
    largest_first = sorted(
        rows.items(), key=lambda row: (-row[1]["DiSCO_beyond"], row[1]["columns"], row[0][2])
    )
    key_sets, *labels = zip(*(label for label, _ in largest_first), strict=True)
    index = pd.MultiIndex.from_arrays(
        [list(map(join_names, key_sets)), *map(list, labels)], names=["keys", "target", "synthesis"]
    )
    figures = pd.DataFrame([row for _, row in largest_first], index=index)
    support = figures["smallest_support"]
    figures["smallest_support"] = support.astype("Int64").mask(support == 0)
    return figures, key_sets


def _name_figures(figures: ExposureFigures, sizes: Sizes) -> dict[str, float]:
    disclosed = figures.disclosed
    return {
        "DiSCO": percent(disclosed.DiSCO, sizes.N_d),
        "DiSCO_others": 100 * disclosed.by_others / sizes.N_d,
        "DiSCO_beyond": 100 * (disclosed.at_n - disclosed.by_others) / sizes.N_d,
        "DiSCO_beyond_se": standard_error(disclosed.squares, sizes.N_d),
        "guessed_beyond": figures.guessed_beyond,
        "guessed_beyond_se": figures.guessed_beyond_se,
        "smallest_support": disclosed.smallest_support,
    }


def _frame_smallest_sets(
    exposed: Sequence[Sequence[ExposedRecords]], search: Search, targets: tuple[Any, ...]
) -> pd.DataFrame:
    labels: list[Any] = [*range(1, search.up_to + 1), NONE]
    rows = {}
    for target, by_synthesis in zip(targets, exposed, strict=True):
        for synthesis, records in enumerate(by_synthesis, start=1):
            by_SD, by_others = records.count_by_smallest_set()
            for label, SD_records, others in zip(labels, by_SD, by_others, strict=True):
                rows[target, synthesis, label] = {
                    "exposed": percent(SD_records, search.records[0]),
                    "exposed_others": percent(others, search.records[0]),
                }
    index = pd.MultiIndex.from_tuples(list(rows), names=["target", "synthesis", "columns"])
    return pd.DataFrame(list(rows.values()), index=index)
