"""The figures that every peer has to compute, and how far two may differ: not at all in counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import disclosure_pipeline as dp

IDENTITY = ("UiO", "UiS", "UiOiS", "repU")
ATTRIBUTE = ("Dorig", "Dsyn", "iS", "DiS", "DiSCO", "DiSDiO")
CAP = (
    *("baseCAPd", "CAPd", "CAPs", "DCAP", "CAP_matched"),
    *("TCAP", "TCAP_disclosive", "TCAP_taub", "DCAP_scaled", "TCAP_scaled"),
)
_TOLERANCE = 1e-9

Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Figures:
    """`counts` of records and of keys, which are exact; `percent`, which was divided."""

    counts: dict[str, int]
    percent: dict[str, float]


def of_sums(identity: Numbers, targets: Mapping[str, Numbers], N_d: int, N_s: int) -> Figures:
    """Figures from the sums of a peer: of the keys, and of each target over all keys.

    Of a target: the six counts of ATTRIBUTE; `base`, the sum of d_t²; `certain`, the SD records with ps = 1
    whose q is in GT; and the sums of quotients CAPd, CAPs, DCAP and TCAP_taub.
    """
    counts = {name: int(identity[name]) for name in IDENTITY}
    percent: dict[str, float] = {}
    for target, target_sums in targets.items():
        counts |= {f"{name}[{target}]": int(target_sums[name]) for name in ATTRIBUTE}
        base, DCAP = target_sums["base"] / N_d**2, target_sums["DCAP"] / N_d
        TCAP = _share(target_sums["DiSCO"], target_sums["iS"])
        shares = {
            "baseCAPd": base,
            "CAPd": target_sums["CAPd"] / N_d,
            "CAPs": target_sums["CAPs"] / N_s,
            "DCAP": DCAP,
            "CAP_matched": _share(target_sums["DCAP"], target_sums["iS"]),
            "TCAP": TCAP,
            "TCAP_disclosive": _share(target_sums["DiSCO"], target_sums["DiS"]),
            "TCAP_taub": _share(target_sums["TCAP_taub"], target_sums["certain"]),
            "DCAP_scaled": _share(DCAP - base, 1 - base),
            "TCAP_scaled": _share(TCAP - base, 1 - base),
        }
        percent |= {f"{name}[{target}]": 100 * share for name, share in shares.items()}
    return Figures(counts, percent)


def of_disclosure(result: dp.Disclosure) -> Figures:
    """Figures of a result of ours with one synthesis; percentages of records are turned back into counts."""

    def count(name: str, percentage: float) -> int:
        return round(percentage * (result.N_s[0] if name in {"UiS", "Dsyn"} else result.N_d) / 100)

    counts = {name: count(name, result.identity[name].iloc[0]) for name in IDENTITY}
    percent: dict[str, float] = {}
    for target in result.targets:
        attribute, cap = result.attribute.loc[(target, 1)], result.cap.loc[(target, 1)]
        counts |= {f"{name}[{target}]": count(name, attribute[name]) for name in ATTRIBUTE}
        percent |= {f"{name}[{target}]": float(cap[name]) for name in CAP}
    return Figures(counts, percent)


def differences(one: Figures, other: Figures) -> list[str]:
    """The names of the figures that are not the same in both."""
    counts = one.counts.keys() | other.counts.keys()
    percent = one.percent.keys() | other.percent.keys()
    return sorted(
        [name for name in counts if one.counts.get(name) != other.counts.get(name)]
        + [name for name in percent if not _equal(one.percent.get(name), other.percent.get(name))]
    )


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return False
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) or (
        math.isnan(one) and math.isnan(other)
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan
