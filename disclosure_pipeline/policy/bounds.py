"""The policy as a custodian writes it: a figure, and in four words what is bounded of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from disclosure_pipeline.evaluation.frames import find_words
from disclosure_pipeline.measures.catalogue import BOUNDABLE, FIGURES
from disclosure_pipeline.measures.entry import Figure, Statistic
from disclosure_pipeline.tables.dictionary import FrozenModel, refuse_entry
from disclosure_pipeline.tables.messages import find_similar, listed

Over = Literal["worst", "mean"]
# Strict: otherwise `repU: yes` would be read as a bound of 1.
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)


class TargetBound(FrozenModel):
    """The bounds of one target, replacing the general ones."""

    at_most: Annotated[Finite | None, Field(description="Largest value allowed")] = None
    at_least: Annotated[
        Finite | None, Field(description="Smallest value allowed, of a figure whose high values are safe")
    ] = None
    at_most_share: Annotated[
        Share | None,
        Field(description="Largest share of GT's own risk (UiO for repU, Dorig for DiSCO) allowed"),
    ] = None
    beyond: Annotated[
        Finite | None,
        Field(
            description="Percentage points allowed beyond what other people's records or a fresh sample "
            "show. For DiSCO also beyond chance: broken if both are exceeded. Holds for the worst synthesis "
            "and for all files together"
        ),
    ] = None
    chance: Annotated[
        Literal[0] | None,
        Field(
            description="0: any difference counts. By default, a difference counts only if fewer than 1 in "
            "10,000 honest tables of this size would show it"
        ),
    ] = None
    worst: Annotated[
        Finite | None,
        Field(description="With over: mean, the bound of each synthesis and of all files together"),
    ] = None

    @property
    def limits(self) -> dict[Statistic, float]:
        """The bounds by what they bound."""
        return {name: limit for name in STATISTICS if (limit := getattr(self, name)) is not None}


class Bound(TargetBound):
    """The bounds of one figure. A plain number is short for the first word that the figure takes."""

    targets: Annotated[
        Mapping[str, Finite | TargetBound], Field(description="Targets with bounds of their own")
    ] = {}
    over: Annotated[
        Over,
        Field(
            description="What the bound applies to: worst, each of the m syntheses and all their records "
            "together, or mean, the mean of the syntheses, which also needs a bound on the worst"
        ),
    ] = "worst"

    def for_target(self, target: str, statistic: Statistic) -> TargetBound:
        """Return the bounds of one target; `statistic` is what a plain number bounds."""
        bound = self.targets.get(target, self)
        if not isinstance(bound, TargetBound):
            bound = TargetBound.model_validate({statistic: bound})
        general = {"worst": self.worst, "chance": self.chance}
        return bound.model_copy(
            update={name: limit for name, limit in general.items() if getattr(bound, name) is None}
        )


_Way = Annotated[Finite | TargetBound | None, Field(description="The bound in this way")]


class FoundBounds(FrozenModel):
    """The bounds of the people found, by the way in which a record shows them."""

    whole: _Way = None
    all_but_one: _Way = None
    nearly: _Way = None
    in_pieces: _Way = None
    nearly_in_pieces: _Way = None
    in_a_group: _Way = None
    in_part_of_a_number: _Way = None

    def to_bound(self) -> Bound | None:
        """Return the bounds by way; None if there are none."""
        ways = {
            read_way(name): of for name in type(self).model_fields if (of := getattr(self, name)) is not None
        }
        return Bound(targets=ways) if ways else None


def read_way(name: str) -> str:
    """Return the way in which people are found that a policy's word stands for.

    >>> read_way("in_a_group")
    'in a group'
    """
    return name.replace("_", " ")


class Protection(FrozenModel):
    """Disclosure protection of each target; grouped columns are compared by group."""

    methods: Annotated[
        tuple[Literal["cap", "zero_cap", "generalized_cap"], ...],
        Field(description="How GT records whose key is not in SD are treated", min_length=1),
    ] = ("cap",)


class Prediction(FrozenModel):
    """Prediction risk of each target, by regression for numbers. Needs the extra `prediction`."""

    learner: Literal["nearest_neighbours", "boosted_trees"] = "nearest_neighbours"


class Measures(FrozenModel):
    """Optional families of measures, beside identity and attribute disclosure."""

    chance: Annotated[bool, Field(description="DiSCO_chance and DiSCO_excess")] = True
    attribution: Annotated[bool, Field(description="The CAP family")] = True
    protection: Annotated[bool | Protection, Field(description="Disclosure protection (SDMetrics)")] = False
    prediction: Annotated[bool | Prediction, Field(description="Prediction risk")] = False

    def includes(self, family: str) -> bool:
        """Return whether a family of figures is switched on; those without a switch always are."""
        return bool(getattr(self, family, True))

    @property
    def methods(self) -> tuple[str, ...]:
        """The enabled methods of disclosure protection."""
        if isinstance(self.protection, Protection):
            return self.protection.methods
        return Protection().methods if self.protection else ()

    @property
    def learner(self) -> str | None:
        """The learner of prediction risk; None if the family is disabled."""
        if isinstance(self.prediction, Prediction):
            return self.prediction.learner
        return Prediction().learner if self.prediction else None


def find_short_word(figure: Figure) -> Statistic:
    """Return what a plain number bounds: the first of the figure's words.

    >>> find_short_word(FIGURES["repU"]), find_short_word(FIGURES["unique_hits"])
    ('at_most', 'beyond')
    """
    return figure.statistics[0]


def _add_figures(schema: dict[str, Any]) -> None:
    """Add the figures as named properties, so that editors complete them and mark unknown ones."""
    bound = schema["additionalProperties"]
    schema["properties"] |= {
        name: {"description": _describe(figure), **bound}
        for name, figure in BOUNDABLE.items()
        if name not in Policy.model_fields
    }
    schema["additionalProperties"] = False


def _describe(figure: Figure) -> str:
    words = f"{figure.words.description} Bounded by {', '.join(figure.statistics)}."
    if figure.default is None:
        return words
    ways = "".join(f", {way} {bound:g}" for way, bound in figure.default.by_way.items())
    default = f"{figure.default.statistic} {figure.default.bound:g}{ways}"
    return f"{words} By default {default}: {figure.default.text}."


class Policy(BaseModel):
    """The bounds of figures, in percent unless stated otherwise; every gate has those with a default."""

    model_config = ConfigDict(extra="allow", frozen=True, json_schema_extra=_add_figures)
    __pydantic_extra__: dict[str, Finite | Bound]

    smallest_count: Annotated[
        int,
        Field(
            description="The smallest number of records that may be reported on. Levels with fewer records "
            "are not named, published figures are rounded to this number of records, and tables that differ "
            "from a measured one in fewer records are not measured",
            ge=1,
            strict=True,
        ),
    ] = 10

    found: Annotated[
        FoundBounds | None,
        Field(description=_describe(FIGURES["found"])),
    ] = None

    evaluations_per_ground_truth: Annotated[
        int,
        Field(
            description="How many different candidates may be measured against one ground truth: each "
            "measurement reveals a little of it",
            ge=1,
            strict=True,
        ),
    ] = 500

    @property
    def bounds(self) -> dict[str, Bound]:
        """The bounds of each figure that the policy names."""
        bounds = {
            name: _read_bound(BOUNDABLE[name], bound) for name, bound in self.__pydantic_extra__.items()
        }
        found = self.found and self.found.to_bound()
        return bounds | {"found": found} if found else bounds

    def find_bound(self, name: str, about: str | None = None) -> float:
        """Return the bound of a figure that every gate bounds, whether the policy names it or not.

        `about`: the target or the way that the figure is about.
        """
        default, bound = FIGURES[name].default, self.bounds.get(name)
        assert default is not None, f"{name} has no default"
        limits: TargetBound | None = bound
        if bound is not None and about is not None:
            limits = bound.for_target(about, default.statistic)
        usual = default.find_bound(about)
        return usual if limits is None else limits.limits.get(default.statistic, usual)

    @model_validator(mode="before")
    @classmethod
    def _figures_are_known(cls, content: Any) -> Any:
        # Before their bounds are read: of an unknown figure, no bound has a right kind.
        for name in content if isinstance(content, Mapping) else ():
            if name not in cls.model_fields and name not in BOUNDABLE:
                raise refuse_entry((name,), explain_unknown(name))
        return content

    @model_validator(mode="after")
    def _bounds_are_possible(self) -> Policy:
        for name, bound in self.bounds.items():
            _check_bound(BOUNDABLE[name], bound)
        return self


def _read_bound(figure: Figure, bound: float | Bound) -> Bound:
    return bound if isinstance(bound, Bound) else Bound.model_validate({find_short_word(figure): bound})


# Words that a policy does not have any more, and what to write or do instead.
_GONE = {
    "guards": "write each figure itself, such as found: {whole: 2.5}",
    **{
        name: f"write found: {{{way}: …}}"
        for name, way in {
            "people_copied": "whole",
            "unique_copies": "whole",
            "partial_copies": "all_but_one",
            "group_copied": "in_a_group",
            "nearer": "nearly",
            "much_nearer": "nearly",
        }.items()
    },
    "people_in_releases": "write found: {whole: …}, which also holds for all releases together",
    "one_way": "flags of the one-way check are shown in the dossier and bound nothing: remove it",
    "two_way": "flags of the two-way check are shown in the dossier and bound nothing: remove it",
}
_LISTED = "docs/measures/gate.md lists the figures that a policy may bound."
_ENDINGS = ("_strictly", "_weighted", "_excess", "_chance", "_beyond")


def explain_unknown(name: str) -> str:
    """Return what to write instead of a name that no policy can bound.

    >>> explain_unknown("unique_hits_beyond")
    'a policy has no such figure: write unique_hits: {beyond: …}'
    """
    base, endings = name, list[str]()
    while (ending := next((ending for ending in _ENDINGS if base.endswith(ending)), "")) and base:
        base, endings = base.removesuffix(ending), [*endings, ending]
    if base in _GONE:
        return f"no part of a policy: {_GONE[base]}"
    base = {"DiSCO_in_releases": "DiSCO_any"}.get(base, base)
    if base in BOUNDABLE:
        figure = BOUNDABLE[base]
        word = "beyond" if {"_beyond", "_excess"} & set(endings) and "beyond" in figure.statistics else ""
        word = word or find_short_word(figure)
        strictly = ", chance: 0" if "_strictly" in endings else ""
        weighted = " and people: weighted in the gate" if "_weighted" in endings else ""
        return f"a policy has no such figure: write {base}: {{{word}: …{strictly}}}{weighted}"
    if find_words(name) is not None:
        return f"a column of the library's frames, which is read, not bounded. {_LISTED}"
    similar = find_similar(name, list(BOUNDABLE))
    return f"a policy has no such figure. {f'Did you mean {listed(similar)}?' if similar else _LISTED}"


def _check_bound(figure: Figure, bound: Bound) -> None:
    """Raise the error of a word that leaves a bound empty, of another kind, or kept by every table."""
    name, short = figure.name, find_short_word(figure)
    if bound.targets and figure.about not in {"target", "way"}:
        raise refuse_entry(
            (name, "targets"), f"{name} is not measured by target: it has no bounds per target"
        )
    bounds: dict[tuple[str, ...], TargetBound] = {(): bound}
    for target in bound.targets:
        limits = bound.for_target(target, short)
        if figure.about == "way":
            bounds[(target.replace(" ", "_"),)] = limits
        else:
            bounds["targets", target] = limits
    for place, limits in bounds.items():
        may_be_empty = limits is bound and bool(bound.targets)
        for word, problem in _find_problems(figure, limits, bound.over, may_be_empty=may_be_empty):
            raise refuse_entry((name, *place, word), problem)


def _find_problems(
    figure: Figure, bound: TargetBound, over: Over, *, may_be_empty: bool
) -> Iterator[tuple[str, str]]:
    """Yield the words of a bound that are wrong, or that one is lacking, with the problem."""
    name, limits, short = figure.name, bound.limits, find_short_word(figure)
    for word in limits:
        if word not in figure.statistics:
            yield word, f"{name} is bounded by {' or '.join(figure.statistics)}, not by {word}"
    if not limits and not may_be_empty:
        yield short, f"the bound of {name} is empty: give {' or '.join(figure.statistics)}"
    allowing = _find_words_with_chance(figure)
    if bound.chance is not None and not (limits.keys() & allowing):
        yield "chance", f"chance of {name} applies to {' or '.join(sorted(allowing)) or 'no bound of it'}"
    numbers: list[tuple[str, float | None]] = [*limits.items(), ("worst", bound.worst)]
    for named, number in numbers:
        if named != "at_most_share" and number is not None:
            yield from ((named, problem) for problem in _find_wrong_range(figure, number))
    if limits.get("beyond") == figure.largest:
        yield "beyond", f"beyond of {name} is {figure.largest:g} points, which every table keeps: lower it"
    if limits.get("at_most_share") == 1 and "at_most" not in limits:
        yield (
            "at_most_share",
            f"at_most_share of {name} is 1, which every table keeps: lower it, or add at_most",
        )
    is_absolute = {"at_most", "at_least", "at_most_share"} & limits.keys()
    if over == "mean" and limits and not is_absolute:
        yield (
            "over",
            f"{name} with over: mean needs at_most or at_least: beyond always applies to the worst",
        )
    if over == "mean" and bound.worst is None and is_absolute:
        yield (
            "over",
            f"only the mean of {name} is bounded, which can hide a bad synthesis: also give worst, the bound "
            "of each synthesis",
        )
    if over == "worst" and bound.worst is not None:
        yield "worst", f"{name} has worst without over: mean; give {short} instead"


def _find_words_with_chance(figure: Figure) -> set[Statistic]:
    """Return the words whose figure counts only beyond chance, unless `chance: 0` says otherwise."""
    if not figure.place.beyond_chance:
        return set()
    return {"beyond"} if "beyond" in figure.statistics else {"at_most"}


def _find_wrong_range(figure: Figure, number: float) -> Iterator[str]:
    name, default = figure.name, figure.default
    if default is not None and not 0 <= number < default.below:
        yield (
            f"the bound of {name} is {number:g}: it must be at least 0 and less than "
            f"{default.below:g}, so that it is not kept by every table"
        )
    if number > figure.largest:
        yield f"{name} is never above {figure.largest:g}: lower its bound"
