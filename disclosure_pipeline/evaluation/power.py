"""The power of a policy: how often it refuses honest tables, and how reliably it refuses copies of people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.errors import choose_form, write_count
from disclosure_pipeline.measures.samples import wilson

if TYPE_CHECKING:
    import altair as alt

SHARES = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
"""Percent of the people whose records are planted in a table."""

COPIES = "copies"
NEAR_COPIES = "near copies"
DILUTED = "copies among ten times as many records"
KINDS = (COPIES, NEAR_COPIES, DILUTED)

MOST = 20_000
"""The most records of a half of GT."""

FEWEST_TRIES = 20
"""Nothing is said of a rate from fewer tries than these."""

UNKNOWN = "not measured well enough to say"

LARGEST_UNNOTICED = 30
"""Percent of the people: a policy that does not notice copies of this many is useless."""

# Without a copy, the tables of these kinds are alike: fresh halves of GT.
_FRESH_HALVES = (COPIES, NEAR_COPIES)
_OFTEN = 19 / 20


@dataclass(frozen=True)
class Refusals:
    """The number of tries, and of those among them that were refused."""

    refused: int
    tries: int

    @property
    def percent(self) -> float:
        """Percent of the tries that were refused."""
        return 100 * self.refused / self.tries

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of this percentage."""
        low, high = wilson(self.refused, self.tries)
        return 100 * low, 100 * high

    @property
    def are_enough(self) -> bool:
        """True if there were enough tries to say something of the rate."""
        return self.tries >= FEWEST_TRIES

    @property
    def are_reliable(self) -> bool:
        """True if at least 19 of 20 tries were refused."""
        return self.refused >= _OFTEN * self.tries

    def __str__(self) -> str:
        return f"{self.refused} of {self.tries}"


@dataclass(frozen=True, repr=False)
class GatePower:
    """The shares of honest tables, and of tables with planted copies of people, that a policy refuses.

    `records`: the size of a random half of GT, which stands in for GT. `noticed`: kind of copy -> for each
    try, the smallest percentage of planted people that was refused: 0 if the table was refused without any,
    infinity if even 100 % were not noticed. Source: this project's own.
    """

    records: int
    noticed: Mapping[str, tuple[float, ...]]

    def count_refused(self, kind: str, share: float) -> Refusals:
        """Count the tries that were refused with `share` percent of the people planted."""
        smallest = self.noticed[kind]
        return Refusals(sum(limit <= min(share, SHARES[-1]) for limit in smallest), len(smallest))

    @property
    def false_refusals(self) -> Refusals:
        """Fresh halves of GT that were refused although they hold no copies."""
        counts = [self.count_refused(kind, 0) for kind in _FRESH_HALVES if kind in self.noticed]
        return Refusals(sum(count.refused for count in counts), sum(count.tries for count in counts))

    def detection_limit(self, kind: str = COPIES) -> float:
        """Return the smallest percentage of copied people that is refused in 19 of 20 tries, or infinity.

        NaN if there were fewer than 20 tries.
        """
        if len(self.noticed[kind]) < FEWEST_TRIES:
            return math.nan
        return next((share for share in SHARES if self.count_refused(kind, share).are_reliable), math.inf)

    @property
    def is_blind(self) -> bool:
        """True if copies of 30 % of the people are not refused in 19 of 20 tries; False if unknown."""
        return self.detection_limit() > LARGEST_UNNOTICED

    @property
    def is_measured(self) -> bool:
        """True if there were enough tries to say something of a kind of copies."""
        return len(self.unknown) < len(self.noticed)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The kinds of copies that were tried too few times to say something of them."""
        return tuple(kind for kind in self.noticed if math.isnan(self.detection_limit(kind)))

    @property
    def unnoticed(self) -> str | None:
        """The kind that is not noticed: copies if `is_blind`, near copies if not even everybody's are."""
        if self.is_blind:
            return COPIES
        return NEAR_COPIES if math.isinf(self.detection_limit(NEAR_COPIES)) else None

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each kind of copy and share of the people (percent).

        The rates are NaN if there were fewer than 20 tries.
        """
        rows = []
        for kind in self.noticed:
            for share in SHARES:
                count = self.count_refused(kind, share)
                rates = (count.percent, *count.interval) if count.are_enough else (math.nan,) * 3
                rows.append((kind, share, count.refused, count.tries, *rates))
        columns = ["planted", "share", "refused", "tries", "percent", "low", "high"]
        return pd.DataFrame(rows, columns=columns)

    def summarize(self) -> str:
        """Return a sentence for a board: which copies are noticed, and how many honest tables are refused."""
        limit, honest = self.detection_limit(), self.false_refusals
        noticed = None if math.isnan(limit) else self.count_refused(COPIES, limit)
        return summarize_power(limit, noticed, honest if honest.are_enough else None)

    def state_finding(self) -> str:
        """Return what a picture of it says, as its title."""
        limit, honest = self.detection_limit(), self.false_refusals
        if math.isnan(limit):
            finding = f"The copies that would be noticed are {UNKNOWN}"
        elif limit == 0 or self.is_blind:
            finding = "Copies are not noticed reliably"
        else:
            finding = f"Copies of {limit:g} % of the people are noticed"
        if not honest.are_enough:
            return finding
        return f"{finding}; {honest} honest tables {choose_form(honest.refused, 'is', 'are')} refused"

    def describe(self) -> list[str]:
        """Return a sentence on honest tables, and one on each kind of copy."""
        honest = self.false_refusals
        low, high = honest.interval
        sentence = f"It refuses {honest} honest tables (95 % interval: {low:.0f} to {high:.0f} %)."
        if not honest.are_enough:
            sentence = f"How many honest tables it refuses is {UNKNOWN}: {_name_tries(honest.tries)}."
        return [sentence, *(self._describe(kind) for kind in self.noticed)]

    def _describe(self, kind: str) -> str:
        limit, without = self.detection_limit(kind), self.count_refused(kind, 0)
        if not without.are_enough:
            return f"Whether it notices {kind} is {UNKNOWN}: {_name_tries(without.tries)}."
        if without.are_reliable:
            return f"Nothing can be said about {kind}: it also refuses such tables without any ({without})."
        if math.isinf(limit):
            all_planted = self.count_refused(kind, SHARES[-1])
            return (
                f"It does not notice {kind} reliably, not even of everybody: it refuses {all_planted} tries."
            )
        also = "" if kind in _FRESH_HALVES or not without.refused else f", and {without} without any"
        return (
            f"It refuses {kind} of {limit:g} % of the people: {self.count_refused(kind, limit)} tries{also}."
        )

    def plot(self) -> alt.LayerChart:
        """Draw the share of tries refused by the share of people copied, with a line per kind of copy."""
        from disclosure_pipeline.evaluation.plots.pictures import plot_power

        return plot_power(self)

    def to_record(self) -> dict[str, Any]:
        """Return the fields as plain JSON, with null for infinity."""
        noticed = {
            kind: [share if math.isfinite(share) else None for share in smallest]
            for kind, smallest in self.noticed.items()
        }
        return {"records": self.records, "noticed": noticed}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> GatePower:
        """Read the output of `to_record`. KeyError, TypeError or ValueError if it is something else."""
        noticed = {
            kind: tuple(math.inf if share is None else float(share) for share in record["noticed"][kind])
            for kind in KINDS
        }
        possible = {*map(float, SHARES), math.inf}
        if not all(smallest and possible.issuperset(smallest) for smallest in noticed.values()):
            raise ValueError("no record of a policy's power")
        return cls(int(record["records"]), noticed)

    def __str__(self) -> str:
        halves = (
            f"random halves of the ground truth, with {write_count(self.records, 'record')} (at "
            f"most {MOST:,})"
        )
        return "\n".join([self.summarize(), *self.describe(), f"Tried on {halves}: the harder case."])

    __repr__ = __str__


def _name_tries(tries: int) -> str:
    return f"only {write_count(tries, 'try was', 'tries were')} made"


def summarize_power(limit: float, noticed: Refusals | None, honest: Refusals | None) -> str:
    """Return a sentence on a gate's detection limit (percent, or infinity) and on refused honest tables.

    None, or fewer than 20 tries, is not measured well enough to say.

    Example:
        >>> summarize_power(5, Refusals(1, 1), None)
        'The copies that this gate would notice, and the honest tables that it refuses, are not measured well enough to say.'

        >>> summarize_power(5, Refusals(19, 20), Refusals(1, 100))
        'This gate would have refused a table that repeats 5 % of the people (19 of 20 times); it refuses 1 of 100 honest tables.'
    """  # noqa: E501
    if honest is None or not honest.are_enough:
        honest = None
    if noticed is None or not noticed.are_enough:
        if honest is None:
            return (
                "The copies that this gate would notice, and the honest tables that it refuses, are "
                f"{UNKNOWN}."
            )
        return f"The copies that this gate would notice are {UNKNOWN}; it refuses {honest} honest tables."
    if limit == 0 and honest is not None:
        return f"This gate refuses honest tables ({honest}), so its detection of copies cannot be measured."
    refuses = f"; it refuses {honest} honest tables." if honest else f"; its false refusals are {UNKNOWN}."
    if limit <= LARGEST_UNNOTICED:
        found = f"would have refused a table that repeats {limit:g} % of the people ({noticed} times)"
        return f"This gate {found}{refuses}"
    blind = f"This gate cannot notice that {LARGEST_UNNOTICED} % of the people are copied"
    if math.isinf(limit):
        return f"{blind}: it refuses a table that repeats everybody only {noticed} times{refuses}"
    return f"{blind}: it refuses a table that repeats {limit:g} % ({noticed} times){refuses}"
