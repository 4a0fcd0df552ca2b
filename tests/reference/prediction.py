"""Prediction risk, record by record, with distances by their definition: slow and obvious."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction

Value = str | float | None
Record = dict[str, Value]

K = 3
EQUAL = 1 + 1e-9


def order(level: Value) -> tuple[bool, object]:
    """Return the levels in order, missing last."""
    return (level is None, level)


def spread(numbers: Sequence[float], fallback: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation of the first list that holds two different numbers."""
    for values in (numbers, fallback):
        if len(set(values)) > 1:
            exact = [Fraction(value) for value in values]
            mean = sum(exact) / len(exact)
            return float(mean), math.sqrt(sum((value - mean) ** 2 for value in exact) / len(exact))
    return 0.0, math.inf


class Distance:
    """The distance of two records in the keys."""

    def __init__(
        self,
        ground_truth: Sequence[Record],
        synthetic: Sequence[Record],
        keys: Sequence[str],
        special: dict[str, list[float]],
    ) -> None:
        self.keys = keys
        self.special = special
        self.scale = {}
        for key in keys:
            in_GT = [record[key] for record in ground_truth if self.is_number(key, record[key])]
            in_both = {
                record[key] for record in [*ground_truth, *synthetic] if self.is_number(key, record[key])
            }
            self.scale[key] = spread(
                [value for value in in_GT if isinstance(value, (int, float))],
                sorted(value for value in in_both if isinstance(value, (int, float))),
            )

    def is_number(self, key: str, value: Value) -> bool:
        return isinstance(value, (int, float)) and value not in self.special.get(key, [])

    def __call__(self, left: Record, right: Record) -> float:
        """Return the squared distance: 2 for two categories, 1 + x² if only one is a number."""
        total = 0.0
        for key in self.keys:
            a, b = left[key], right[key]
            if a == b:
                continue
            center, deviation = self.scale[key]
            numbers = [
                (float(value) - center) / deviation
                for value in (a, b)
                if value is not None and self.is_number(key, value)
            ]
            if len(numbers) == 2:
                total += (numbers[0] - numbers[1]) ** 2
            elif len(numbers) == 1:
                total += 1 + numbers[0] ** 2
            else:
                total += 2
        return total


def nearest(record: Record, known: Sequence[Record], distance: Distance) -> list[Record]:
    """Return the k nearest records and all that are no farther away."""
    distances = [distance(record, other) for other in known]
    radius = sorted(distances)[: min(K, len(known))][-1] * EQUAL
    return [other for other, far in zip(known, distances, strict=True) if far <= radius]


def guess(voters: Sequence[Record], target: str) -> tuple[Value, dict[Hashable, Fraction]]:
    """Return the level with most votes, the first of ties, and the confidence in each level."""
    votes = Counter(voter[target] for voter in voters)
    most = max(votes.values())
    winner = min((level for level, count in votes.items() if count == most), key=order)
    return winner, {level: Fraction(count, len(voters)) for level, count in votes.items()}


def average(voters: Sequence[Record], target: str) -> float:
    return math.fsum(float(value) for voter in voters if (value := voter[target]) is not None) / len(voters)


def percent(part: int, whole: int) -> float:
    return 100 * part / whole


def classification(
    ground_truth: Sequence[Record],
    synthetic: Sequence[Record],
    keys: Sequence[str],
    target: str,
    special: dict[str, list[float]],
    tau: float,
    same_size: tuple[Sequence[int], Sequence[Sequence[int]]],
) -> tuple[dict[str, float], list[dict[str, object]]]:
    """Return the figures, and the outcome of each record; a GT record is predicted from all others.

    `same_size`: the SD records, and for each GT record the GT records, that are learned from where both
    tables are to have equally many.
    """
    N_d = len(ground_truth)
    base = Counter(record[target] for record in ground_truth)
    naive = guess(synthetic, target)[0]
    from_SD = Distance(ground_truth, synthetic, keys, special)
    from_GT = Distance(ground_truth, [], keys, special)
    kinds = ("SD", "GT", "GT_in_sample", "naive", "SD_same_size", "GT_same_size")
    limit = Fraction(str(tau))
    certain = {"SD": 0, "GT": 0}
    outcomes: list[dict[str, object]] = []
    for i, record in enumerate(ground_truth):
        level = record[target]
        b = Fraction(base[level], N_d)
        known = {
            "SD": synthetic,
            "GT": [*ground_truth[:i], *ground_truth[i + 1 :]],
            "GT_in_sample": ground_truth,
            "SD_same_size": [synthetic[j] for j in same_size[0]],
            "GT_same_size": [ground_truth[j] for j in same_size[1][i]],
        }
        assert i not in same_size[1][i]
        assert abs(len(known["SD_same_size"]) - len(known["GT_same_size"])) <= 1
        guesses = {
            who: guess(nearest(record, table, from_SD if who.startswith("SD") else from_GT), target)
            for who, table in known.items()
        }
        named = {who: level_named for who, (level_named, _) in guesses.items()} | {"naive": naive}
        sure = {who: guesses[who][1].get(level, Fraction(0)) for who in certain}
        r = {who: (g - b) / (1 - b) if b < 1 else None for who, g in sure.items()}
        at_risk = {who: None if of_who is None else of_who > limit for who, of_who in r.items()}
        for who, is_at_risk in at_risk.items():
            certain[who] += bool(is_at_risk)
        outcome: dict[str, object] = {f"correct_{who}": named[who] == level for who in kinds}
        outcome |= {f"confidence_{who}": float(g) for who, g in sure.items()}
        outcome |= {f"normalised_{who}": math.nan if x is None else float(x) for who, x in r.items()}
        outcomes.append(outcome | {"at_risk": at_risk["SD"]})
    right = {who: sum(bool(o[f"correct_{who}"]) for o in outcomes) for who in kinds}
    single = len(base) == 1
    gains = [int(bool(o["correct_SD_same_size"])) - int(bool(o["correct_GT_same_size"])) for o in outcomes]
    low, high = paired_interval(gains)
    return {
        **{f"accuracy_{who}": percent(right[who], N_d) for who in ("SD", "GT", "GT_in_sample", "naive")},
        "gain_over_naive": percent(right["SD"] - right["naive"], N_d),
        "gain_over_GT": percent(right["SD_same_size"] - right["GT_same_size"], N_d),
        "gain_over_GT_low": 100 * low,
        "gain_over_GT_high": 100 * high,
        "RAPID": math.nan if single else percent(certain["SD"], N_d),
        "RAPID_GT": math.nan if single else percent(certain["GT"], N_d),
    }, outcomes


def paired_interval(differences: Sequence[int]) -> tuple[float, float]:
    """Return the mean of differences of -1, 0 and 1 plus and minus 1.96 standard errors.

    Half a record more in each of the four cells: two records more, one of them different, which way open.
    """
    n = len(differences) + 2
    mean = sum(differences) / n
    square = (sum(abs(difference) for difference in differences) + 1) / n
    half = 1.959963984540054 * math.sqrt((square - mean**2) / n)
    return max(-1.0, mean - half), min(1.0, mean + half)


def relative_error(true: float, predicted: float) -> float:
    """Return the error in percent of the true value."""
    if predicted == true:
        return 0.0
    return 100 * abs(predicted - true) / abs(true) if true else math.inf


def regression(
    ground_truth: Sequence[Record],
    synthetic: Sequence[Record],
    keys: Sequence[str],
    target: str,
    special: dict[str, list[float]],
    epsilon: float,
) -> tuple[dict[str, float], list[dict[str, object]]]:
    """Measure as `classification` does, for numbers; records without one are left out, with no outcome."""
    no_number = (None, *special.get(target, []))
    from_SD = Distance(ground_truth, synthetic, keys, special)
    from_GT = Distance(ground_truth, [], keys, special)
    known = [record for record in synthetic if record[target] not in no_number]
    naive = average(known, target)
    outcomes: list[dict[str, object]] = []
    kinds = ("SD", "GT", "GT_in_sample", "naive")
    squares: dict[str, list[float]] = {kind: [] for kind in kinds}
    close = dict.fromkeys(kinds, 0)
    learned = ("SD", "GT", "GT_in_sample")
    worse = {"worse_from_SD": 0, "worse_from_SD_in_sample": 0}
    for i, record in enumerate(ground_truth):
        true = record[target]
        if true in no_number:
            outcomes.append(dict.fromkeys([*(f"relative_error_{who}" for who in learned), *worse, "at_risk"]))
            continue
        assert isinstance(true, (int, float))
        others = [r for j, r in enumerate(ground_truth) if j != i and r[target] not in no_number]
        predicted = {
            "SD": average(nearest(record, known, from_SD), target),
            "GT": average(nearest(record, others, from_GT), target),
            "GT_in_sample": average(
                nearest(record, [r for r in ground_truth if r[target] not in no_number], from_GT), target
            ),
            "naive": naive,
        }
        for who, value in predicted.items():
            squares[who].append((value - true) ** 2)
            close[who] += relative_error(true, value) < epsilon
        error = {who: abs(predicted[who] - true) for who in learned}
        is_worse = dict(zip(worse, (error["SD"] > error[who] for who in ("GT", "GT_in_sample")), strict=True))
        for name in worse:
            worse[name] += is_worse[name]
        relative = {f"relative_error_{who}": relative_error(true, predicted[who]) for who in learned}
        outcomes.append({**relative, **is_worse, "at_risk": relative["relative_error_SD"] < epsilon})
    scored = len(squares["SD"])
    return {
        **{f"mse_{who}": math.fsum(squares[who]) / scored for who in kinds},
        **{name: percent(number, scored) for name, number in worse.items()},
        "RAPID": percent(close["SD"], scored),
        "RAPID_GT": percent(close["GT"], scored),
        "RAPID_naive": percent(close["naive"], scored),
    }, outcomes
