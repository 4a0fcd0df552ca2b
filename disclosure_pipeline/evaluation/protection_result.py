"""The result of `disclosure_protection()`: figures beside their baselines, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from disclosure_pipeline.evaluation.frames import frame_of, row_of
from disclosure_pipeline.measures.intervals import Interval
from disclosure_pipeline.measures.protection import Attack, ProtectionBaselines, cap_protection, score
from disclosure_pipeline.measures.words import PROJECT, SDMETRICS, SHARE, Direction, Words, described
from disclosure_pipeline.tables.alignment import Tables

# The figures that a gate's frame has for each method: shares from 0 to 1.
FRAME_FIGURES = ("cap_protection", "score", "majority_score", "proportional_score")

_GUESSES = {"uniform": "baseline", "majority": "majority", "proportional": "proportional"}
_SCORES = {"score": "baseline", "majority_score": "majority", "proportional_score": "proportional"}
_UNMATCHED = {
    "cap": "a GT record whose keys are not in SD is left out",
    "zero_cap": "a GT record whose keys are not in SD counts as guessed wrong",
    "generalized_cap": "a GT record whose keys are not in SD is looked up by the nearest ones",
}


def _words(title: str, sentence: str, high_is: Direction = "neither", source: str = PROJECT) -> Words:
    return Words(title, sentence, SHARE, high_is=high_is, source=source)


@dataclass(frozen=True)
class ProtectionFigures:
    """The shares and scores of one synthesis: see `DisclosureProtection`."""

    cap_protection: float = described(
        _words(
            "protection",
            "The mean share of wrong guesses of somebody who looks people up in the synthetic table.",
            "safe",
            SDMETRICS,
        )
    )
    baseline_protection: float = described(
        _words(
            "protection against guessing any value",
            "The share of wrong guesses of somebody who guesses every combination equally often.",
            source=SDMETRICS,
        )
    )
    score: float = described(
        _words(
            "protection score",
            "The protection over that against guessing any value; 1 where the synthetic table is of no help.",
            "safe",
            SDMETRICS,
        )
    )
    majority_protection: float = described(
        _words(
            "protection against the most frequent value",
            "The share of wrong guesses of somebody who always guesses the most frequent combination.",
        )
    )
    majority_score: float = described(
        _words(
            "protection score over the most frequent value",
            "The protection over that against always guessing the most frequent combination.",
            "safe",
        )
    )
    proportional_protection: float = described(
        _words(
            "protection against proportional guesses",
            "The share of wrong guesses of somebody who guesses each combination as often as it occurs.",
        )
    )
    proportional_score: float = described(
        _words(
            "protection score over proportional guesses",
            "The protection over that against guessing each combination as often as it occurs.",
            "safe",
        )
    )


@dataclass(frozen=True, repr=False, eq=False)
class DisclosureProtection:
    """The protection of the targets: shares from 0 to 1, not percent; high values are safe.

    `figures`: index synthesis. `cap_protection`: mean share of wrong guesses over the `scored` GT records.
    The same for an intruder without the synthetic table, over all GT records: `baseline_protection` guesses
    every combination of levels equally often, `majority_protection` always the most frequent combination,
    `proportional_protection` each as often as it occurs. `score`, `majority_score`, `proportional_score`:
    cap_protection divided by them, at most 1; NaN where that cannot be told. `…_low` and `…_high` of these
    four: an interval that holds the figure of all GT records with at least the `confidence` named; the figure
    itself where all of them were attacked. `matched`: GT records whose key combination is in SD.

    `distances`: for each synthesis the number of GT records by the number of keys in which the SD records
    differ that they are looked up in; only those that differ in none for cap and zero_cap. `sampled`: the GT
    records that were attacked; `scored`, `matched`, `distances` and all figures but the baselines are theirs.
    """

    method: str
    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    N_d: int
    N_s: tuple[int, ...]
    sampled: int
    seed: int
    confidence: float
    figures: pd.DataFrame
    distances: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        several = len(self.figures) > 1
        tables = [
            (f"Synthesis {synthesis}: " if several else "")
            + f"{int(row['scored']):,} of {self.N_d:,} GT records scored, {records:,} SD records\n\n"
            + self._table(row).to_string(na_rep="", line_width=80)
            for (synthesis, row), records in zip(self.figures.iterrows(), self.N_s, strict=True)
        ]
        return "\n\n".join([self._heading(), *tables])

    __repr__ = __str__

    def _heading(self) -> str:
        targets, keys = (", ".join(map(str, names)) for names in (self.targets, self.keys))
        estimated = (
            f"\nEstimated from {self.sampled:,} sampled GT records; "
            f"intervals of {100 * self.confidence:g} % confidence"
            if self.sampled < self.N_d
            else ""
        )
        return (
            f"Disclosure protection of {targets} from the keys {keys}\n"
            f"Method {self.method}: {_UNMATCHED[self.method]}\n"
            f"Shares guessed wrong, from 0 to 1, and scores, at most 1; high is safe{estimated}"
        )

    def _table(self, row: pd.Series[float]) -> pd.DataFrame:
        """Return the figures as they are printed: first from SD, then the baselines without it."""
        protections = [row["cap_protection"], *(row[f"{name}_protection"] for name in _GUESSES.values())]
        table = pd.DataFrame(
            {
                "guessed wrong": [f"{protection:.4f}" for protection in protections],
                "score": ["", *(f"{row[name]:.4f}" for name in _SCORES)],
            },
            index=pd.Index(["with SD", *(f"no SD, {name}" for name in _GUESSES)]),
        )
        if self.sampled < self.N_d:
            low, high = (
                [f"{row[f'{name}_{end}']:.4f}" for name in ("cap_protection", *_SCORES)]
                for end in ("low", "high")
            )
            intervals = [f"{start} to {end}" for start, end in zip(low, high, strict=True)]
            table.insert(1, "interval", [intervals[0], "exact", "exact", "exact"])
            table["score interval"] = ["", *intervals[1:]]
        return table


def protection_figures(baselines: ProtectionBaselines, attack: Attack) -> ProtectionFigures:
    """Return the figures of one synthesis, from the attack on its GT records."""
    protection = cap_protection(attack)
    return ProtectionFigures(
        cap_protection=protection,
        baseline_protection=baselines.uniform,
        score=score(protection, baselines.uniform),
        majority_protection=baselines.majority,
        majority_score=score(protection, baselines.majority),
        proportional_protection=baselines.proportional,
        proportional_score=score(protection, baselines.proportional),
    )


def protection_result(
    tables: Tables,
    method: str,
    figures: Sequence[ProtectionFigures],
    attacks: Sequence[Attack],
    intervals: Sequence[Interval],
    sampling: tuple[int, int, float],
) -> DisclosureProtection:
    """Return the result; `intervals` are those of cap_protection, `sampling` records, seed and confidence."""
    farthest = len(tables.keys) if method == "generalized_cap" else 0
    rows = {}
    for i, (of_synthesis, attack, (low, high)) in enumerate(zip(figures, attacks, intervals, strict=True)):
        ends = {"cap_protection_low": low, "cap_protection_high": high}
        for name, baseline in _SCORES.items():
            protection = getattr(of_synthesis, f"{baseline}_protection")
            ends |= {f"{name}_low": score(low, protection), f"{name}_high": score(high, protection)}
        counts = {"scored": attack.records, "matched": attack.at_distance(0)}
        rows[(i + 1,)] = {**counts, **row_of(of_synthesis), **ends}
    N_d, *N_s = (len(frame) for frame in tables.frames)
    sampled, seed, confidence = sampling
    return DisclosureProtection(
        method=method,
        keys=tables.keys,
        targets=tables.targets,
        N_d=N_d,
        N_s=tuple(N_s),
        sampled=sampled,
        seed=seed,
        confidence=confidence,
        figures=frame_of(rows, ["synthesis"], list(rows[(1,)])),
        distances=tuple(tuple(attack.at_distance(h) for h in range(farthest + 1)) for attack in attacks),
    )
