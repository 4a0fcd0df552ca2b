"""The draw of records that the baselines take, as a database makes it: the hashes of `measures.draws`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from disclosure_pipeline.counting.relational.coding import Digits, as_int64, int64, word_columns
from disclosure_pipeline.counting.targets import Target
from disclosure_pipeline.measures.draws import PRIME, SEED, drawn_below, multiplier

_BITS_OF_PRIME = 31  # 2**31 is 1 more than the prime, so that to shift by 31 bits changes no remainder


@dataclass(frozen=True)
class Draw:
    """Which table is drawn from (0 is GT): its records whose hash is below a number."""

    table: int
    below: int


def draws_of(target: Target, syntheses: Sequence[int]) -> dict[int, Draw]:
    """The draws that a target needs, by synthesis."""
    sizes = {synthesis: target.sizes(synthesis) for synthesis in syntheses}
    return {
        synthesis: Draw(synthesis if of.synthetic_is_drawn else 0, drawn_below(of))
        for synthesis, of in sizes.items()
        if of.something_is_drawn
    }


def hash_records(records: Any, target: int, digits: Sequence[Digits]) -> Any:
    """The coded records with their hash: a column h0, h1, … by the number of the target."""
    import ibis

    t = f"t{target}"
    of_cell = ibis.window(group_by=["i", *word_columns(records), t], order_by=records["i"])
    numbered = records.mutate(number=as_int64(ibis.row_number().over(of_cell)))
    levels = [_level(numbered, key_digits) for key_digits in digits]
    numbers = [numbered["number"], as_int64(numbered[t]), *levels]
    terms = [
        _remainder((number + int64(1)) * int64(multiplier(position)))
        for position, number in enumerate(numbers)
    ]
    hashed = numbered.mutate(x=_remainder(reduce(add, terms, int64(SEED))))
    hashed = hashed.mutate(square=_remainder(hashed["x"] * hashed["x"]))
    fourth = _remainder(hashed["square"] * hashed["square"])
    return hashed.mutate(**{f"h{target}": _remainder(fourth * hashed["x"])})


def _level(records: Any, key_digits: Digits) -> Any:
    """The level of a key, from its place within a word, without a shift: not every database has one."""
    back = (1 << (-key_digits.shift % _BITS_OF_PRIME)) % PRIME
    in_place = records[f"q{key_digits.word}"] & int64(key_digits.mask)
    return _remainder(_remainder(in_place) * int64(back))


def _remainder(number: Any) -> Any:
    return as_int64(number % int64(PRIME))
