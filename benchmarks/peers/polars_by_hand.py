"""Polars: keys and targets as one number a record, counted by the streaming engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
from figures import Figures, of_sums

_WHOLE = pl.Int64()


def prepare(paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]) -> Callable[[], Figures]:
    """Text becomes enumerations, of the same levels in both tables."""
    frames = [pl.read_parquet(path, columns=[*keys, *targets]) for path in paths]
    for name in frames[0].columns:
        if not frames[0].schema[name].is_integer():
            text = pl.concat([frame[name].cast(pl.String) for frame in frames])
            levels = pl.Enum(text.drop_nulls().unique().sort())
            frames = [frame.with_columns(pl.col(name).cast(pl.String).cast(levels)) for frame in frames]
    gt, sd = frames
    return lambda: measure(gt, sd, keys, targets)


def measure(gt: pl.DataFrame, sd: pl.DataFrame, keys: Sequence[str], targets: Sequence[str]) -> Figures:
    codes = {name: _code(gt, sd, name) for name in (*keys, *targets)}
    q = pl.lit(0, dtype=_WHOLE)
    for key in keys:
        code, size = codes[key]
        q = q * size + code
    records = pl.concat(
        [
            table.lazy().select(*targets, q=q, d=pl.lit(in_GT, dtype=_WHOLE))
            for table, in_GT in ((gt, 1), (sd, 0))
        ]
    ).collect(engine="streaming")
    identity: dict[str, int] = {}
    target_sums = {}
    for target in targets:
        t, levels = codes[target]
        d = pl.col("d")
        cells = (
            records.lazy()
            .select("d", cell=pl.col("q") * levels + t)
            .group_by("cell")
            .agg(d.sum(), s=pl.len().cast(_WHOLE) - d.sum())
        )
        k = _sums_of_keys(cells, levels)
        expressions = [*_totals(), *([] if identity else _identity())]
        row = k.select(expressions).collect(engine="streaming").row(0, named=True)
        identity = identity or row
        base = gt.lazy().group_by(target).agg(n=pl.len().cast(_WHOLE)).select((pl.col("n") ** 2).sum())
        target_sums[target] = row | {"base": base.collect().item()}
    return of_sums(identity, target_sums, len(gt), len(sd))


def _code(gt: pl.DataFrame, sd: pl.DataFrame, name: str) -> tuple[pl.Expr, int]:
    """The code of a level, from 0, which is missing; and how many there are."""
    dtype, column = gt.schema[name], pl.col(name)
    if isinstance(dtype, pl.Enum):
        return (column.to_physical().cast(_WHOLE) + 1).fill_null(0), len(dtype.categories) + 1
    ends = pl.concat([table.select(low=column.min(), high=column.max()) for table in (gt, sd)])
    low, high = ends.select(pl.col("low").min(), pl.col("high").max()).row(0)
    return (column.cast(_WHOLE) - low + 1).fill_null(0), high - low + 2


def _sums_of_keys(cells: pl.LazyFrame, levels: int) -> pl.LazyFrame:
    d, s = pl.col("d"), pl.col("s")
    return cells.group_by(q=pl.col("cell") // levels).agg(
        d.sum(), s.sum(), dd=(d * d).sum(), ss=(s * s).sum(), ds=(d * s).sum()
    )


def _identity() -> list[pl.Expr]:
    in_GT, in_SD = pl.col("d") == 1, pl.col("s") == 1
    return [
        in_GT.sum().alias("UiO"),
        in_SD.sum().alias("UiS"),
        (in_GT & (pl.col("s") > 0)).sum().alias("UiOiS"),
        (in_GT & in_SD).sum().alias("repU"),
    ]


def _totals() -> list[pl.Expr]:
    d, s, dd, ss, ds = (pl.col(name) for name in ("d", "s", "dd", "ss", "ds"))
    in_GT, in_SD = d > 0, s > 0
    GT_has_one, SD_has_one = in_GT & (dd == d * d), in_SD & (ss == s * s)
    return [
        d.filter(GT_has_one).sum().alias("Dorig"),
        s.filter(SD_has_one).sum().alias("Dsyn"),
        d.filter(in_SD).sum().alias("iS"),
        d.filter(SD_has_one).sum().alias("DiS"),
        (ds.filter(SD_has_one) // s.filter(SD_has_one)).sum().alias("DiSCO"),
        d.filter(GT_has_one & SD_has_one & (ds > 0)).sum().alias("DiSDiO"),
        s.filter(SD_has_one & in_GT).sum().alias("certain"),
        (dd / d).filter(in_GT).sum().alias("CAPd"),
        (ss / s).filter(in_SD).sum().alias("CAPs"),
        (ds / s).filter(in_SD).sum().alias("DCAP"),
        (ds / d).filter(SD_has_one & in_GT).sum().alias("TCAP_taub"),
    ]
