"""Record by record: `individual_attribution()`, for the GT records and for the synthetic ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.analyses.cap_plots import draw_distributions, draw_individual_cap
from disclosure_pipeline.counting.tables_in_memory import read_tables
from disclosure_pipeline.evaluation.arguments import choose_target
from disclosure_pipeline.evaluation.comparability import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.evaluation.frames import join_records, row_of, show_frame
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, frequency_tables
from disclosure_pipeline.measures.individual import combine_cells, individual, share_of_key
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, repr=False, eq=False)
class IndividualAttribution:
    """The exposure of each GT record, and how sure each synthetic record is of its target.

    `records`: a row per GT record, with GT's index; columns (target, synthesis, figure), so that
    `records["ill", 1]` is a frame of plain columns. CAP_GT, the chance of a right guess when the guess is
    drawn from the GT records with the record's key; CAP, the same when it is drawn from the synthesis, 0
    where that has no such key; DiSCO, DiSDiO and repU, true where the record counts towards them. Chances are
    from 0 to 1. 100 times the mean of a column is CAPd, DCAP, DiSCO, DiSDiO or repU of `disclosure()`.

    `weap`: a row per synthetic record, index (synthesis, index of the synthesis), and a column per target:
    the within equivalence class attribution probability, which is the share of the record's own level among
    the synthetic records with its key. 100 times its mean is CAPs; the share of records at 1 is Dsyn.

    Both tell of single records how they can be attacked: they are as confidential as the ground truth.
    """

    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    records: pd.DataFrame
    weap: pd.DataFrame
    _cells: Mapping[Hashable, Sequence[FrequencyTable]]

    def __str__(self) -> str:
        means = (100 * self.records.mean()).unstack("figure", sort=False)
        return (
            f"Individual attribution from the keys {', '.join(map(str, self.keys))}\n"
            f"{len(self.records):,} GT records, {len(self.weap):,} SD records\n"
            "Means over the GT records, in percent\n\n"
            f"{show_frame(means)}"
        )

    __repr__ = __str__

    def plot(self, target: Hashable | None = None) -> alt.ConcatChart:
        """Draw how sure an intruder can be of each GT record from GT and from SD, a panel per synthesis.

        Every GT record stands at its own CAP under GT and under SD; the colour counts the records at a
        place, on a logarithmic scale, and the bars along the sides add them up. Above the diagonal a record
        is easier to guess from SD than from GT. A key that is not in SD stands apart from one that is there,
        but never with the record's own level (0). `target` may be left out where there is one.

        Source of the scatter: Baillargeon & Charest 2020.
        """
        name = choose_target(target, self.targets)
        return draw_individual_cap(name, self._cells[name])

    def plot_distributions(self, target: Hashable | None = None) -> alt.FacetChart:
        """Draw the CAP of all GT records under each synthesis, the highest average (DCAP) first.

        Each row shows its own average, and GT's average (CAPd) as a line through all rows. Percent of GT
        records. `target` may be left out where there is one.

        Source: Baillargeon & Charest 2020.
        """
        name = choose_target(target, self.targets)
        return draw_distributions(name, self._cells[name])


def individual_attribution(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> IndividualAttribution:
    """Return what each record is exposed to. Nothing is excluded.

    Arguments and errors as in `disclosure()`; the tables are read into memory.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40], "illness": ["flu", "cold", "flu"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40], "illness": ["flu", "flu", "cold"]})
        >>> attribution = dp.individual_attribution(patients, synthetic, ["age"], "illness")
        >>> attribution.records["illness", 1]
        figure  CAP_GT  CAP  DiSCO  DiSDiO   repU
        0          0.5  1.0   True   False  False
        1          0.5  0.0  False   False  False
        2          1.0  0.5  False   False  False
        >>> attribution.weap["illness"].tolist()
        [1.0, 0.5, 0.5]

    Sources: Baillargeon & Charest 2020; Raab, Nowok & Dibben 2024 (arXiv:2406.16826), appendix 1; Taub,
    Elliot, Pampaka & Smith 2018, "Differential correct attribution probability".
    """
    tables = read_tables(ground_truth, synthetic, keys, targets, grouping_of(groups, special_values, edges))
    key_columns, target_columns = tables.code(tables.keys), tables.code(tables.targets)
    warn_of_doubts(find_doubts(tables, [*key_columns, *target_columns]))
    q = combine_columns(key_columns)
    records: dict[tuple[Any, int], pd.DataFrame] = {}
    weap, frequencies = {}, {}
    for target in target_columns:
        cells = combine_cells(q, target.codes, target.size)
        CAP_GT = share_of_key(cells, q, 0, 0)
        for synthesis in range(1, len(tables.frames)):
            figures = {"CAP_GT": CAP_GT, **row_of(individual(cells, q, synthesis))}
            records[target.name, synthesis] = pd.DataFrame(figures)
        weap[target.name] = _weap(tables, cells, q)
        frequencies[target.name] = tuple(frequency_tables(q, target.codes, target.size))
    return IndividualAttribution(
        keys=tables.keys,
        targets=tables.targets,
        records=join_records(records, tables.frames[0].index),
        weap=pd.concat(weap, axis=1, names=["target"]),
        _cells=frequencies,
    )


def _weap(tables: Tables, cells: Keys, q: Keys) -> pd.Series[float]:
    of_syntheses = {
        i: pd.Series(share_of_key(cells, q, i, i), index=frame.index)
        for i, frame in enumerate(tables.frames[1:], start=1)
    }
    return pd.concat(of_syntheses, names=["synthesis"])
