"""A ground truth with a column of every type, and exact copies of it that are written in some other way."""

import csv as csv_module
import gzip
import io
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

RECORDS = 1500
ZONE = "Europe/Warsaw"

DEFINITION: dict[str, Any] = {
    **{"name": "mismatches", "ground_truth": "x", "incoming": "x", "store": "x", "releases": "x"},
    "trusted_keys": "x",
    "columns": {
        "person": {"type": "text identifier"},
        "sex": {"type": "category", "levels": ["female", {"level": "male", "aliases": ["m"]}]},
        "age": {"type": "integer", "missing_codes": [-9]},
        "region": {"type": "category"},
        "born": {"type": "date"},
        "visit": {"type": "datetime", "time_zone": ZONE},
        "height": {"type": "number"},
        "member": {"type": "boolean"},
        "work": {"type": "category", "missing_codes": ["NA"]},
        "income": {"type": "integer", "special_values": [-8], "groups": 5},
    },
    "keys": ["sex", "age", "region", "born", "visit", "height", "member"],
    "targets": ["work", "income"],
    "policy": {"repU": 8, "DiSCO": {"at_most": 20, "targets": {"income": 15}}},
}
NEEDED = [*DEFINITION["keys"], *DEFINITION["targets"]]


def people(seed: int, records: int = RECORDS) -> pd.DataFrame:
    """Every column by itself: with another seed it is a synthesis that gives nothing away."""
    random = np.random.default_rng(seed)

    def draw(values: Any, weights: Any) -> Any:
        shares = np.array(weights, dtype=float)
        return random.choice(np.array(values, dtype=object), records, p=shares / shares.sum())

    visits = ["2024-03-01T08:15:00", "2024-07-01T12:45:00"]
    return pd.DataFrame(
        {
            "person": [f"{seed}-{i}" for i in range(records)],
            "sex": draw(["female", "male"], [1, 1]),
            "age": draw([20, 31, 42, 53, 64, 75, 86, None], [8, 7, 6, 5, 4, 3, 2, 1]),
            "region": draw(["Łódź", "Kraków", "Gdańsk"], [5, 2, 1]),
            "born": draw(["1950-02-28", "1975-12-31", "2000-02-29"], [3, 2, 1]),
            "visit": draw([pd.Timestamp(visit, tz=ZONE).isoformat() for visit in visits], [5, 1]),
            "height": draw([1.61, 1.75, 1.9], [2, 2, 1]),
            "member": draw([True, False], [6, 1]),
            "work": draw(["office", "field", "none", None], [4, 3, 2, 1]),
            "income": draw([-8, *range(100, 2000, 7)], [30, *[1] * 272]),
        }
    )


GROUND_TRUTH = people(1)
COPY = GROUND_TRUTH[NEEDED]

Write = Callable[[Path], Any]
Change = Callable[[pd.DataFrame], pd.DataFrame]


def unchanged(copy: pd.DataFrame) -> pd.DataFrame:
    return copy


def csv(change: Change = unchanged, **options: Any) -> Write:
    return content(lambda: as_bytes(change(COPY), **options))


def content(make: Callable[[], bytes], name: str = "synthetic.csv") -> Write:
    return lambda folder: (folder / name).write_bytes(make())


def as_bytes(frame: pd.DataFrame = COPY, encoding: str = "utf-8", **options: Any) -> bytes:
    return frame.to_csv(index=options.pop("index", False), **options).encode(encoding)


def parquet(change: Change = unchanged, **types: Any) -> Write:
    """As a Parquet file with columns of these Arrow types."""

    def write(folder: Path) -> None:
        frame = change(COPY)
        columns = {
            str(name): pa.array(
                [None if pd.isna(value) else value for value in frame[name]], types.get(str(name))
            )
            for name in frame
        }
        pq.write_table(pa.table(columns), folder / "synthetic.parquet")

    return write


def change_each(name: str, form: Callable[[Any], Any], rows: slice = slice(None)) -> Change:
    def change(copy: pd.DataFrame) -> pd.DataFrame:
        frame = copy.astype(object)
        values = frame[name].tolist()
        for i in range(*rows.indices(len(values))):
            values[i] = None if pd.isna(values[i]) else form(values[i])
        frame[name] = pd.Series(values, dtype=object)
        return frame

    return change


def filled(name: str, code: Any) -> Change:
    return lambda copy: copy.assign(**{name: copy[name].astype(object).where(copy[name].notna(), code)})


def csv_with(name: str, form: Callable[[Any], Any]) -> Write:
    return csv(change_each(name, form))


def half_and_half(copy: pd.DataFrame) -> pd.DataFrame:
    """Every column by itself shares half of its values, and no record is whole."""
    half = len(copy) // 2
    upper = change_each("region", str.upper, slice(None, half))
    return change_each("age", lambda age: age + 500, slice(half, None))(upper(copy))


def local(visit: str) -> str:
    return pd.Timestamp(visit).strftime("%Y-%m-%d %H:%M:%S")


def zoned(zone: str) -> Callable[[str], str]:
    return lambda visit: pd.Timestamp(visit).tz_convert(zone).isoformat()


def feather() -> bytes:
    sink = io.BytesIO()
    table = pa.Table.from_pandas(COPY, preserve_index=False)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def write_categories_in_another_order(folder: Path) -> None:
    levels = ["not here", *sorted(COPY["region"].unique(), reverse=True)]
    codes = [levels.index(region) for region in COPY["region"]]
    table = pa.Table.from_pandas(COPY, preserve_index=False)
    region = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(levels))
    at = table.schema.get_field_index("region")
    pq.write_table(table.set_column(at, "region", region), folder / "synthetic.parquet")


OUTSIDE = "column {!r}: lies outside the range"
DECIMALS = "column 'height': has more decimals"
NEW_REGION, NEW_WORK = (
    f"column '{name}': holds a level that the ground truth does not have" for name in ("region", "work")
)
NO_INTEGER, NO_NUMBER = "column 'age': is not of type integer", "column 'height': is not of type number"
NO_DATE, NO_BOOLEAN = "column 'born': is not of type date", "column 'member': is not of type boolean"
NOT_DECLARED = "column 'sex': is not among the declared levels"

# Each is an exact copy of GT: what it is written as, and None where it must be measured as the copy it is, or
# what the refusal must say.
ALTERED: dict[str, tuple[Write, str | None]] = {
    "nothing": (csv(), None),
    # Types and forms of numbers
    "whole numbers as text": (parquet(change_each("age", str), age=pa.string()), None),
    "whole numbers as floats": (parquet(age=pa.float64()), None),
    "whole numbers as decimals": (parquet(change_each("age", lambda age: Decimal(f"{age}.00"))), None),
    "whole numbers with .0": (csv_with("age", "{}.0".format), None),
    "leading zeros": (csv_with("age", "{:04}".format), None),
    "a plus sign": (csv_with("age", "+{}".format), None),
    "exponents": (csv_with("age", "{:.1e}".format), NO_INTEGER),
    "float noise on whole numbers": (csv_with("age", lambda age: age + 1e-9), NO_INTEGER),
    "float noise in Parquet": (parquet(change_each("age", lambda age: age + 1e-9)), NO_INTEGER),
    "float noise on numbers": (csv_with("height", lambda height: height + 1e-12), DECIMALS),
    "more than noise on numbers": (csv_with("height", lambda height: height + 1e-8), DECIMALS),
    "numbers in single precision": (parquet(height=pa.float32()), None),
    "numbers with more zeros": (csv_with("height", "{:.5f}".format), None),
    "decimal commas": (csv_with("height", lambda height: str(height).replace(".", ",")), NO_NUMBER),
    "numbers as percent": (csv_with("height", "{}%".format), NO_NUMBER),
    "another unit": (csv_with("height", lambda height: height * 100), OUTSIDE.format("height")),
    "a target in another unit": (
        csv_with("income", lambda income: income * 1000 if income > 0 else income),
        OUTSIDE.format("income"),
    ),
    "thousands separators": (csv_with("income", "{:,}".format), "column 'income': is not of type integer"),
    # Text
    "trailing blanks": (csv_with("region", "{} ".format), None),
    "blanks around": (csv_with("sex", " {}\t".format), None),
    "no-break spaces": (csv_with("region", "\u00a0{}\u00a0".format), None),
    "another Unicode form": (csv_with("region", lambda text: unicodedata.normalize("NFD", text)), None),
    "compatibility characters": (
        csv_with("region", lambda text: "".join(chr(ord(c) + 0xFEE0) if c.isascii() else c for c in text)),
        NEW_REGION,
    ),
    "invisible characters": (csv_with("region", "{}\u200b".format), NEW_REGION),
    "lower case": (csv_with("region", str.lower), NEW_REGION),
    "upper case of declared levels": (csv_with("sex", str.upper), NOT_DECLARED),
    "aliases": (csv_with("sex", lambda sex: "m" if sex == "male" else sex), None),
    "undeclared codes": (csv_with("sex", lambda sex: str(["female", "male"].index(sex))), NOT_DECLARED),
    "a target in upper case": (csv_with("work", str.upper), NEW_WORK),
    "quotation marks as part of the text": (csv_with("region", '"{}"'.format), NEW_REGION),
    "two halves, each with another key altered": (csv(half_and_half), NEW_REGION),
    # Dates and times
    "days as midnights": (parquet(change_each("born", pd.Timestamp), born=pa.timestamp("ns")), None),
    "days as days": (parquet(change_each("born", lambda day: pd.Timestamp(day).date())), None),
    "days with a time of day": (csv_with("born", "{}T12:00:00".format), NO_DATE),
    "days in another order": (csv_with("born", lambda day: "/".join(reversed(day.split("-")))), NO_DATE),
    "days as numbers of a spreadsheet": (
        csv_with("born", lambda day: (pd.Timestamp(day) - pd.Timestamp("1899-12-30")).days),
        NO_DATE,
    ),
    "times in UTC": (csv_with("visit", zoned("UTC")), None),
    "times in another zone": (csv_with("visit", zoned("Asia/Kolkata")), None),
    "times without an offset, in the declared zone": (csv_with("visit", local), None),
    "times without an offset, in another zone": (
        csv_with("visit", lambda visit: local(zoned("America/New_York")(visit))),
        "share their visit with",
    ),
    "times as instants": (
        parquet(change_each("visit", pd.Timestamp), visit=pa.timestamp("ns", "Asia/Tokyo")),
        None,
    ),
    "times cut to days": (csv_with("visit", lambda visit: visit[:10]), "share their visit with"),
    # True and false
    "true and false in capitals": (csv_with("member", lambda member: str(member).upper()), None),
    "true and false as numbers": (csv_with("member", int), NO_BOOLEAN),
    "true and false as numbers in Parquet": (parquet(change_each("member", int)), NO_BOOLEAN),
    "yes and no": (csv_with("member", lambda member: "yes" if member else "no"), NO_BOOLEAN),
    # Missing values
    "a declared missing code": (csv(filled("work", "NA")), None),
    "a declared missing code as a number": (csv(filled("age", -9)), None),
    "a missing code that is not declared": (csv(filled("age", ".")), NO_INTEGER),
    "NaN": (parquet(age=pa.float64()), None),
    "a key that is all missing": (
        csv(lambda copy: copy.assign(region=None)),
        "column 'region': holds nothing but missing values",
    ),
    # Columns
    "columns in another order": (csv(lambda copy: copy[NEEDED[::-1]]), None),
    "categories in another order": (write_categories_in_another_order, None),
    "records in another order": (csv(lambda copy: copy.sample(frac=1, random_state=1)), None),
    "a column more": (
        csv(lambda copy: copy.assign(weight=1)),
        "column '(other columns)': 1 column is not in the data dictionary",
    ),
    "a column fewer": (csv(lambda copy: copy.drop(columns="work")), "'work': the column is not in the table"),
    "a column by another name": (
        csv(lambda copy: copy.rename(columns={"sex": "Sex"})),
        "'sex': the column is not in the table",
    ),
    "a column twice": (csv(lambda copy: pd.concat([copy, copy[["sex"]]], axis=1)), "have the same name"),
    "the row numbers of pandas": (csv(index=True), "data dictionary: it holds the row numbers"),
    "the identifiers of GT": (csv(lambda _: GROUND_TRUTH), "column 'person': is a text identifier"),
    # Files
    "Parquet": (parquet(), None),
    "Arrow": (content(feather, "synthetic.arrow"), None),
    "tabs": (content(lambda: as_bytes(sep="\t"), "synthetic.tsv"), None),
    "compressed": (content(lambda: gzip.compress(as_bytes()), "synthetic.csv.gz"), None),
    "a byte order mark": (csv(encoding="utf-8-sig"), None),
    "line ends of Windows": (csv(lineterminator="\r\n"), None),
    "every field in quotes": (csv(quoting=csv_module.QUOTE_ALL), None),
    "in two files": (lambda folder: [COPY.to_csv(folder / f"{i}.csv", index=False) for i in (1, 2)], None),
    "Windows-1250": (csv(encoding="cp1250"), "cannot be read"),
    "UTF-16": (csv(encoding="utf-16"), "cannot be read"),
    "semicolons": (csv(sep=";"), "no column of the data dictionary"),
    "tabs by the name of commas": (csv(sep="\t"), "no column of the data dictionary"),
    "no header": (csv(header=False), "no column of the data dictionary"),
    "cut off within a record": (content(lambda: as_bytes()[: -len(b",office,100\n") - 8]), "cannot be read"),
    "cut off when it was compressed": (
        content(lambda: gzip.compress(as_bytes())[:-200], "synthetic.csv.gz"),
        "cannot be read",
    ),
    "Arrow cut off": (content(lambda: feather()[:-200], "synthetic.arrow"), "cannot be read"),
    "a header and no records": (csv(lambda copy: copy.iloc[:0]), "the table has no records"),
    "Arrow by the name of CSV": (content(feather, "synthetic.csv"), ""),
}


# The same gate without identifiers, with exclusions, and with every level and pair checked.
RICH: dict[str, Any] = DEFINITION | {
    "columns": {name: column for name, column in DEFINITION["columns"].items() if name != "person"},
    "exclusions": {"missing_keys": True, "target_levels": {"work": ["office"]}, "count_over": 30},
    "two_way": [0, 0],
    "one_way": [0, 0],
}
