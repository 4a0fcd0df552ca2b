"""The clauses of a gate's policy: each bounds one statistic of one figure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from disclosure_pipeline.evaluation.long_table import name_way
from disclosure_pipeline.measures.catalogue import BOUNDABLE, DEFAULTS, FIGURES
from disclosure_pipeline.measures.entry import Figure, Statistic
from disclosure_pipeline.measures.found import WAYS
from disclosure_pipeline.measures.words import NONE, Words
from disclosure_pipeline.policy.bounds import Bound, Over, find_short_word
from disclosure_pipeline.tables.dictionary import at_entry
from disclosure_pipeline.tables.levels import name_level
from disclosure_pipeline.tables.messages import suggest_names

if TYPE_CHECKING:
    from disclosure_pipeline.policy.gate import Gate

RequiredBound = Literal["identity", "attribute"]


@dataclass(frozen=True)
class EarlierWords:
    """The words of a clause of an earlier version, whose figures had other names."""

    name: str
    share_of: str | None
    at_least: bool
    control: bool


@dataclass(frozen=True)
class Clause:
    """A bound on a statistic of a figure, which the worst of its rows must keep.

    Attributes:
        about: the targets, keys or the further confidential table that it is about; empty for the whole table
        over: whether each file must keep it, and all of them together, or their mean
        chance: whether only what is beyond chance counts, where the figure allows for it
        warns: a broken clause warns and does not refuse
        by_weight: it also holds for the shares of people by weight
        earlier: of a clause that an earlier version wrote, what it says of itself
    """

    figure: str
    statistic: Statistic
    bound: float
    about: tuple[str, ...] = ()
    over: Over = "worst"
    chance: bool = True
    warns: bool = False
    by_weight: bool = False
    earlier: EarlierWords | None = None

    def __str__(self) -> str:
        over = "mean of the syntheses" if self.over == "mean" else "worst synthesis"
        loosened = "" if self.loosened_from is None else f", loosened from {self.loosened_from:g}"
        loosened += "" if self.chance else ", tightened to leave nothing to chance"
        about = ", ".join(self.about)
        columns = f" ({about})" if self._is_of_way else f" of {about}" if about else ""
        return f"{self.figure}{columns} is {self.side} {self.bound:g}{self._unit}{loosened} ({over})"

    @property
    def _unit(self) -> str:
        if self.statistic == "beyond":
            return " beyond"
        return f" of {self.share_of}" if self.share_of else ""

    @property
    def entry(self) -> Figure | None:
        """The catalogue's entry; None for a figure that only an earlier version knew."""
        return FIGURES.get(self.figure) if self.earlier is None else None

    @property
    def column(self) -> str | None:
        """The column or confidential table that it is about; None for several, or the whole table."""
        return self.about[0] if len(self.about) == 1 else None

    @property
    def is_of_further_table(self) -> bool:
        """True if it is about people of a further confidential table."""
        return self._is_of_way and self.column not in {None, *WAYS}

    @property
    def _is_of_way(self) -> bool:
        return self.entry is not None and self.entry.about == "way"

    @property
    def at_least(self) -> bool:
        """True if the bound is a minimum."""
        return self.statistic == "at_least" if self.earlier is None else self.earlier.at_least

    @property
    def side(self) -> str:
        """The side of the bound, in words."""
        return "at least" if self.at_least else "at most"

    @property
    def share_of(self) -> str | None:
        """GT's own risk that the bound is a share of; None for an absolute bound."""
        if self.earlier is not None:
            return self.earlier.share_of
        return self.entry.place.own if self.statistic == "at_most_share" and self.entry is not None else None

    @property
    def control(self) -> bool:
        """True if the clause says whether the engine can be trusted."""
        return self.figure == "controls" if self.earlier is None else self.earlier.control

    @property
    def words(self) -> Words:
        """The words of what is bounded."""
        if self.entry is None:
            return Words.neutral(self.figure, "This version does not know the figure.", NONE)
        return self.entry.find_words(self.statistic)

    @property
    def default_bound(self) -> float | None:
        """The default of a risk that every gate bounds, else None."""
        default = FIGURES[self.figure].default if self.figure in DEFAULTS else None
        return None if default is None else default.find_bound(self.column)

    @property
    def loosened_from(self) -> float | None:
        """The default of a figure that this gate bounds more loosely, else None."""
        default = None if self.entry is None else self.entry.default
        bound = self.default_bound
        if default is None or bound is None or default.statistic != self.statistic:
            return None
        return bound if self.bound > bound else None

    @property
    def consequence(self) -> Literal["warns", "leaves undetermined", "refuses"]:
        """The consequence of breaking the clause."""
        if self.warns:
            return "warns"
        # Overlaps of keys are checked on arrival: a broken one ends the run before anything is measured.
        is_doubt = self.control or self.figure in KEY_OVERLAPS
        is_doubt = is_doubt or (self.entry is not None and self.entry.is_doubt)
        return "leaves undetermined" if is_doubt else "refuses"

    @property
    def name(self) -> str:
        """The name, unique in a policy: "repU", "repU share", "DiSCO[income] beyond" or "repU (mean)"."""
        if self.earlier is not None:
            return self.earlier.name
        name = self.figure if self.column is None else f"{self.figure}[{self.column}]"
        name += {"beyond": " beyond", "at_most_share": " share"}.get(self.statistic, "")
        return f"{name} (mean)" if self.over == "mean" else name

    def to_row(self) -> dict[str, Any]:
        """Return the clause as plain data."""
        row = asdict(self) | {"about": list(self.about)}
        del row["earlier"]
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Clause:
        """Return the clause of a row, which may have further fields, or be of an earlier version.

        Raise KeyError if a field is missing.
        """
        if "figure" not in row:
            return _read_earlier(row)
        names = ("figure", "statistic", "bound", "over", "chance", "warns", "by_weight")
        return cls(**{name: row[name] for name in names}, about=tuple(row["about"]))


KEY_OVERLAPS = ("key_overlap", "whole_key_overlap")
"""The figures that are judged as soon as a candidate arrives."""


def _read_earlier(row: Mapping[str, Any]) -> Clause:
    column, share_of = row["column"], row["share_of"]
    name = row["measure"] if column is None else f"{row['measure']}[{column}]"
    name = name if share_of is None else f"{name} / {share_of}"
    name = f"{name} (mean)" if row["over"] == "mean" else name
    statistic: Statistic = "at_least" if row["at_least"] else "at_most"
    return Clause(
        row["measure"],
        statistic if share_of is None else "at_most_share",
        row["bound"],
        () if column is None else (column,),
        row["over"],
        warns=row["warns"],
        earlier=EarlierWords(name, share_of, row["at_least"], row["control"]),
    )


def list_clauses(gate: Gate) -> tuple[Clause, ...]:
    """Return every clause of a gate: first what its policy bounds, then the figures that every gate bounds.

    Raise ValueError if identity disclosure or DiSCO of a target (within its band, if it has one) has no
    bound, or if a bound is on a column that is not a target or on a figure that is not measured.
    """
    bounds, by_weight = gate.policy.bounds, gate.people == "weighted"
    bounded: list[Clause] = []
    for name, bound in bounds.items():
        with at_entry("policy", name):
            bounded += _list_bound_clauses(BOUNDABLE[name], bound, gate, by_weight=by_weight)
    unbounded = find_unbounded(bounded, gate.targets, tuple(gate.within))
    if unbounded:
        raise ValueError(f"set a bound on {', '.join(unbounded)}, as no value is safe by default")
    of_every_gate = (
        clause
        for name, figure in FIGURES.items()
        if name not in bounds
        for clause in _list_default_clauses(figure, gate, by_weight=by_weight)
    )
    clauses = (*bounded, *of_every_gate)
    return (*clauses, *_list_level_clauses(clauses, gate))


def _list_bound_clauses(figure: Figure, bound: Bound, gate: Gate, *, by_weight: bool) -> Iterator[Clause]:
    if not gate.measures.includes(figure.family):
        raise ValueError(f"this figure is not measured: enable the family {figure.family} under measures")
    columns = _find_columns(figure, gate)
    _require_measured(figure, bound, columns, gate)
    for about in _divide_columns(figure, columns):
        by_column = figure.about in {"target", "way"}
        limits = bound.for_target(about[0], find_short_word(figure)) if by_column else bound
        chance, weighed = limits.chance is None, by_weight and _is_weighed(figure, about)
        bounds = limits.limits
        if not bounds and figure.default is not None:  # the policy bounds other targets only
            bounds = {figure.default.statistic: figure.default.find_bound(about[0] if about else None)}
        for statistic, limit in bounds.items():
            if statistic == "beyond" and figure.place.permuted and not gate.measures.chance:
                raise ValueError("a bound beyond needs what chance gives: enable measures.chance")
            over: Over = "worst" if statistic == "beyond" else bound.over
            yield Clause(figure.name, statistic, limit, about, over, chance, by_weight=weighed)
        if limits.worst is not None:
            statistic = "at_least" if figure.high_is_safe else "at_most"
            yield Clause(figure.name, statistic, limits.worst, about, "worst", chance, by_weight=weighed)


def _divide_columns(figure: Figure, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the columns that have a clause of their own, or all of them together."""
    is_divided = figure.question == "learned" or figure.about == "way"
    return [(column,) for column in columns] if is_divided else [tuple(columns)]


def _is_weighed(figure: Figure, about: Collection[str]) -> bool:
    """Return whether a figure is also measured by weight: of the ways only one."""
    place = figure.weighed
    return place is not None and (not place.about or place.about in about)


def _find_columns(figure: Figure, gate: Gate) -> Sequence[str]:
    if figure.place.frame == "bands":
        return list(gate.within)
    if figure.name == "gain_over_GT":
        return [name for name, task in gate.tasks.items() if task == "classification"]
    if figure.about == "way":
        return [*WAYS, *(name_way(way, table) for table in gate.confidential for way in WAYS)]
    return {"": (), "target": gate.targets, "key": gate.keys}[figure.about]


def _require_measured(figure: Figure, bound: Bound, columns: Sequence[str], gate: Gate) -> None:
    known = list(columns if figure.about == "way" else gate.targets)
    for target in bound.targets:
        with at_entry("policy", figure.name, "targets", target):
            if target not in known:
                raise ValueError(f"{target!r} is no target. {suggest_names(target, known, 'They are')}")
    unmeasured = [target for target in bound.targets if target not in columns]
    if not unmeasured and (columns or not figure.about):
        return
    missing = f"{', '.join(unmeasured)} is not" if unmeasured else "no target is"
    if figure.place.frame == "bands":
        missing = f"{', '.join(unmeasured)} has no within" if unmeasured else "no target has it"
        raise ValueError(f"only targets with within have this figure: {missing}")
    raise ValueError(f"this figure is only measured for targets predicted by classification: {missing}")


def _list_default_clauses(figure: Figure, gate: Gate, *, by_weight: bool) -> Iterator[Clause]:
    """Yield the clauses of a figure that every gate bounds, and that the policy does not bound itself."""
    name, default = figure.name, figure.default
    if name == "excluded":
        if gate.exclusions.limit is not None:
            yield Clause(name, "at_most", gate.exclusions.limit, tuple(gate.targets))
    elif name == "epsilon_beyond_claim":
        if gate.holdout is not None:
            yield Clause(name, "at_most", 0)
    elif default is not None:
        about = tuple(_find_columns(figure, gate))
        if figure.about and not about:
            return  # no target has a band
        warns = name == "warnings" and gate.warnings == "warn"
        groups = _divide_columns(figure, about) if figure.about == "way" else [about]
        for group in groups:
            bound = default.find_bound(group[0] if group else None)
            weighed = by_weight and _is_weighed(figure, group)
            yield Clause(name, default.statistic, bound, group, warns=warns, by_weight=weighed)


def _list_level_clauses(clauses: Sequence[Clause], gate: Gate) -> Iterator[Clause]:
    """Yield the clauses on sensitive levels, which take the bounds of their targets."""
    for figure in FIGURES.values():
        for clause in clauses:
            if figure.follows != clause.figure or clause.statistic not in figure.statistics:
                continue
            for target in clause.about:
                for level in gate.sensitive.get(target, ()):
                    weighed = clause.by_weight and figure.weighed is not None
                    about = (name_level(target, level),)
                    yield replace(clause, figure=figure.name, about=about, by_weight=weighed)


def find_unbounded(
    bounded: Collection[Clause], targets: Sequence[str], banded: Sequence[str] = ()
) -> list[str]:
    """Return what every policy must bound and these clauses do not.

    >>> clauses = [Clause("repU", "at_most", 8), Clause("DiSCO", "beyond", 3, ("work",))]
    >>> find_unbounded(clauses, ["work", "income"])
    ['DiSCO of income']
    """
    has_identity = any(find_required_bound(clause) == "identity" for clause in bounded)
    bounded_targets = {
        column
        for clause in bounded
        if find_required_bound(clause) == "attribute"
        for column in clause.about
        # The exact value of an amount with a band is hardly ever disclosed, so bounding it is not enough.
        if clause.figure == "DiSCO_within" or column not in banded
    }
    unbounded = [target for target in targets if target not in bounded_targets]
    return [
        *([] if has_identity else ["repU or unique_hits"]),
        *(f"{'DiSCO_within' if target in banded else 'DiSCO'} of {target}" for target in unbounded),
    ]


def find_required_bound(clause: Clause) -> RequiredBound | None:
    """Return the kind of disclosure that every policy bounds, if the clause does so.

    >>> [find_required_bound(Clause(name, "at_most", 8)) for name in ("repU", "alike")]
    ['identity', None]
    """
    if clause.figure in {"repU", "unique_hits"}:
        return "identity"
    return "attribute" if clause.figure in {"DiSCO", "DiSCO_within"} else None


def list_effective_clauses(clauses: Sequence[Clause]) -> list[str]:
    """Return each clause in words, with the consequence of breaking it.

    >>> list_effective_clauses([Clause("repU", "at_most", 8)])
    ['repU is at most 8 (worst synthesis): refuses']
    """
    return [
        f"{clause}: {'nothing is determined without it' if clause.control else clause.consequence}"
        for clause in clauses
    ]
