"""What `disclosure_protection()` and its estimate return: figures beside their baselines, as a table."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Annotated, Any

import pandas as pd

from disclosure_pipeline.measures.protection import Attack, ProtectionBaselines, cap_protection, score
from disclosure_pipeline.measures.words import SDMETRICS, SHARE, Words
from disclosure_pipeline.tables.alignment import Tables

# The figures that a gate's frame has for each method: shares from 0 to 1.
FRAME_FIGURES = ("cap_protection", "score", "majority_score", "proportional_score")

Interval = tuple[float, float]

_BASELINES = {"uniform": "baseline", "majority": "majority", "proportional": "proportional"}
_UNMATCHED = {
    "cap": "a GT record whose keys are not in SD is left out",
    "zero_cap": "a GT record whose keys are not in SD counts as guessed wrong",
    "generalized_cap": "a GT record whose keys are not in SD is looked up by the nearest ones",
}


@dataclass(frozen=True, repr=False)
class DisclosureProtection:
    """How well the sensitive columns are protected. Shares from 0 to 1, not percent; high values are safe.

    `cap_protection`: mean share of wrong guesses over the `scored` GT records. The same for an intruder
    without the synthetic table, over all GT records: `baseline_protection` guesses every combination of
    levels equally often, `majority_protection` always the most frequent combination,
    `proportional_protection` each as often as it occurs. `score`, `majority_score`, `proportional_score`:
    cap_protection divided by them, at most 1; NaN where that cannot be told.
    `distances`: number of GT records by the number of keys in which the SD records differ that they are
    looked up in; only those that differ in none for cap and zero_cap.
    `N_d`, `N_s`: number of GT and of SD records.
    """

    method: str
    keys: tuple[Any, ...]
    sensitive: tuple[Any, ...]
    N_d: int
    N_s: int
    scored: int
    distances: tuple[int, ...]
    cap_protection: Annotated[
        float,
        Words(
            "protection",
            "The mean share of wrong guesses of somebody who looks people up in the synthetic table.",
            unit=SHARE,
            denominator="",
            high_is="safe",
            source=SDMETRICS,
        ),
    ]
    baseline_protection: Annotated[
        float,
        Words(
            "protection against guessing any value",
            "The share of wrong guesses of somebody who guesses every combination equally often.",
            unit=SHARE,
            denominator="",
            high_is="neither",
            source=SDMETRICS,
        ),
    ]
    score: Annotated[
        float,
        Words(
            "protection score",
            "The protection over that against guessing any value; 1 where the synthetic table is of no help.",
            unit=SHARE,
            denominator="",
            high_is="safe",
            source=SDMETRICS,
        ),
    ]
    majority_protection: Annotated[
        float,
        Words(
            "protection against the most frequent value",
            "The share of wrong guesses of somebody who always guesses the most frequent combination.",
            unit=SHARE,
            denominator="",
            high_is="neither",
        ),
    ]
    majority_score: Annotated[
        float,
        Words(
            "protection score over the most frequent value",
            "The protection over that against always guessing the most frequent combination.",
            unit=SHARE,
            denominator="",
            high_is="safe",
        ),
    ]
    proportional_protection: Annotated[
        float,
        Words(
            "protection against proportional guesses",
            "The share of wrong guesses of somebody who guesses each combination as often as it occurs.",
            unit=SHARE,
            denominator="",
            high_is="neither",
        ),
    ]
    proportional_score: Annotated[
        float,
        Words(
            "protection score over proportional guesses",
            "The protection over that against guessing each combination as often as it occurs.",
            unit=SHARE,
            denominator="",
            high_is="safe",
        ),
    ]

    @property
    def matched(self) -> int:
        """Number of GT records (of those attacked) whose key combination occurs in SD."""
        return self.distances[0]

    def baselines(self) -> pd.DataFrame:
        """A row for each baseline (uniform, majority, proportional): its protection, and the score by it."""
        return pd.DataFrame(
            {
                "protection": [
                    self.baseline_protection,
                    self.majority_protection,
                    self.proportional_protection,
                ],
                "score": [self.score, self.majority_score, self.proportional_score],
            },
            index=pd.Index(list(_BASELINES), name="baseline"),
        )

    def __str__(self) -> str:
        return f"{self._heading()}\n\n{self._table().to_string(na_rep='')}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heading = html.escape(self._heading()).replace("\n", "<br>")
        return f"<p>{heading}</p>{self._table().to_html(na_rep='')}"

    def _heading(self) -> str:
        sensitive, keys = (", ".join(map(str, names)) for names in (self.sensitive, self.keys))
        return (
            f"Disclosure protection of {sensitive} from the keys {keys}\n"
            f"Method {self.method}: {_UNMATCHED[self.method]}\n"
            f"{self.scored:,} of {self.N_d:,} GT records scored, {self.N_s:,} SD records\n"
            "Shares of records guessed wrong, from 0 to 1, and scores, at most 1; high is safe"
        )

    def _table(self) -> pd.DataFrame:
        """Return the figures as they are printed: first from SD, then the baselines without it."""
        without = self.baselines()
        rows = ["with SD", *(f"without SD, {name} guess" for name in without.index)]
        protections = [self.cap_protection, *without["protection"]]
        scores = ["", *(f"{of_baseline:.4f}" for of_baseline in without["score"])]
        return pd.DataFrame(
            {"guessed wrong": [f"{protection:.4f}" for protection in protections], "score": scores},
            index=pd.Index(rows),
        )


@dataclass(frozen=True, repr=False)
class DisclosureProtectionEstimate(DisclosureProtection):
    """Disclosure protection estimated from `sampled` GT records, looked up in the whole synthetic table.

    `scored`, `distances`, `cap_protection` and the scores are of the sample; the baselines are exact. Each
    interval holds the figure of all GT records with at least the `confidence` named.
    """

    sampled: int
    seed: int
    confidence: float
    cap_protection_interval: Interval
    score_interval: Interval
    majority_score_interval: Interval
    proportional_score_interval: Interval

    def _heading(self) -> str:
        intervals = f"intervals of {100 * self.confidence:g} % confidence"
        return f"{super()._heading()}\nEstimated from {self.sampled:,} sampled GT records; {intervals}"

    def _table(self) -> pd.DataFrame:
        table = super()._table()
        scores = (self.score_interval, self.majority_score_interval, self.proportional_score_interval)
        low, high = self.cap_protection_interval
        table.insert(1, "interval", [f"{low:.4f} to {high:.4f}", "exact", "exact", "exact"])
        table["score interval"] = ["", *(f"{low:.4f} to {high:.4f}" for low, high in scores)]
        return table


def protection_result(
    tables: Tables, synthesis: int, method: str, baselines: ProtectionBaselines, attack: Attack
) -> DisclosureProtection:
    """Return the figures of one synthesis (1…m), from the attack on its GT records."""
    protection = cap_protection(attack)
    farthest = len(tables.keys) if method == "generalized_cap" else 0
    return DisclosureProtection(
        method=method,
        keys=tables.keys,
        sensitive=tables.targets,
        N_d=len(tables.frames[0]),
        N_s=len(tables.frames[synthesis]),
        scored=attack.records,
        distances=tuple(attack.at_distance(h) for h in range(farthest + 1)),
        cap_protection=protection,
        baseline_protection=baselines.uniform,
        score=score(protection, baselines.uniform),
        majority_protection=baselines.majority,
        majority_score=score(protection, baselines.majority),
        proportional_protection=baselines.proportional,
        proportional_score=score(protection, baselines.proportional),
    )


def estimate_result(
    result: DisclosureProtection, sampled: int, seed: int, confidence: float, interval: Interval
) -> DisclosureProtectionEstimate:
    """The figures of a sample of GT records with their intervals; `interval` is that of cap_protection."""

    def score_interval(baseline: float) -> Interval:
        return score(interval[0], baseline), score(interval[1], baseline)

    return DisclosureProtectionEstimate(
        **vars(result),
        sampled=sampled,
        seed=seed,
        confidence=confidence,
        cap_protection_interval=interval,
        score_interval=score_interval(result.baseline_protection),
        majority_score_interval=score_interval(result.majority_protection),
        proportional_score_interval=score_interval(result.proportional_protection),
    )
