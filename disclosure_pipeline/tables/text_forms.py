"""The forms in which dates and numbers are written as text, to say why they are not read as such."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_PARTS = {
    "YYYY": r"(?P<year>\d{4})",
    "YY": r"(?P<year>\d{2})",
    "Month": rf"(?P<month>{'|'.join(_LONG_MONTHS)})",
    "Mon": rf"(?P<month>{'|'.join(_MONTHS)})",
    "MM": r"(?P<month>\d{1,2})",
    "DD": r"(?P<day>\d{1,2})",
}
_FORMS = (
    *("YYYY-MM-DD", "YYYYMMDD", "YYYY/MM/DD", "YYYY.MM.DD", "YYYY-Mon-DD"),
    *("DD.MM.YYYY", "DD/MM/YYYY", "DD-MM-YYYY", "MM/DD/YYYY", "MM-DD-YYYY"),
    *("DD Mon YYYY", "DD-Mon-YYYY", "DDMonYYYY", "DD/Mon/YYYY", "Mon DD, YYYY", "Mon DD YYYY"),
    *("DD Month YYYY", "Month DD, YYYY", "Month DD YYYY"),
    *("DD.MM.YY", "DD/MM/YY", "DD-MM-YY", "MM/DD/YY", "MM-DD-YY", "DD-Mon-YY", "DDMonYY", "DD Mon YY"),
)
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?"
_FIRST_YEAR, _LAST_YEAR = 1800, 2200
_YEAR_OF_TWO_DIGITS = 100


def _compile(form: str) -> re.Pattern[str]:
    pattern = re.sub("YYYY|YY|Month|Mon|MM|DD", lambda part: _PARTS[part[0]], re.escape(form))
    if form == "YYYYMMDD":
        pattern = pattern.replace(r"\d{1,2}", r"\d{2}")
    return re.compile(pattern + _TIME, re.IGNORECASE | re.ASCII)


_PATTERNS = {form: _compile(form) for form in _FORMS}


def find_date_forms(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the forms, such as "YYYY-MM-DD", in which every text is a date; empty if there is none.

    >>> find_date_forms(["2020-04-05", "2020-12-31"]), find_date_forms(["05 Apr 2020", "31 May 2020"])
    (('YYYY-MM-DD',), ('DD Mon YYYY',))
    >>> find_date_forms(["01/02/2020"]), find_date_forms(["01/02/2020", "31/02/2020"])
    (('DD/MM/YYYY', 'MM/DD/YYYY'), ())
    """
    forms = list(_FORMS)
    is_empty = True
    for text in texts:
        is_empty = False
        forms = [form for form in forms if _is_date(text.strip(), form)]
        if not forms:
            break
    return () if is_empty else tuple(forms)


def _is_date(text: str, form: str) -> bool:
    match = _PATTERNS[form].fullmatch(text)
    if match is None:
        return False
    month = match["month"].casefold()
    year = int(match["year"])
    try:
        date = datetime.date(
            year + 2000 if year < _YEAR_OF_TWO_DIGITS and "YYYY" not in form else year,
            int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1,
            int(match["day"]),
        )
    except ValueError:
        return False
    return _FIRST_YEAR <= date.year < _LAST_YEAR


DECIMAL_COMMA = r"^(\s*[+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?\s*)$"
"""A number with a decimal comma: its parts before and after the comma."""

DECIMAL_POINT = r"^\s*[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?\s*$"
_GROUPED_BY_POINTS = r"^\s*[+-]?[0-9]{1,3}((\.[0-9]{3})+,[0-9]+|(\.[0-9]{3}){2,})\s*$"
_NOTHING = r"[^\s\S]"


@dataclass(frozen=True)
class NumberForm:
    """The decimal mark of numbers written as text, and perhaps a separator of thousands."""

    decimal: str
    thousands: str | None = None

    @property
    def pattern(self) -> str:
        """Matches the numbers that have one of the marks, apart from those with a decimal point alone."""
        if self.thousands is None:
            return DECIMAL_COMMA
        decimal, mark = re.escape(self.decimal), re.escape(self.thousands)
        grouped = rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+(?:{decimal}[0-9]+)?"
        with_comma = r"|[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?" if self.decimal == "," else ""
        return rf"^\s*[+-]?(?:{grouped}{with_comma})\s*$"

    @property
    def other(self) -> str:
        """Matches numbers, of which those in another form may not be in the same column."""
        if self.thousands is None:
            return DECIMAL_POINT
        decimal, mark = re.escape(self.decimal), re.escape(self.thousands)
        with_point = r"|[0-9]*\.[0-9]+" if "." not in self.decimal + self.thousands else ""
        return rf"^\s*[+-]?(?:[0-9]+(?:{mark}[0-9]+)+(?:{decimal}[0-9]+)?{with_point})\s*$"

    @property
    def mixed(self) -> str:
        """Matches numbers with both marks, if only the decimal one was declared."""
        return _GROUPED_BY_POINTS if self.thousands is None else _NOTHING

    @property
    def problem(self) -> str:
        """Say that a column has numbers of several forms, and what to do."""
        if self.thousands is None:
            return (
                "numbers with a decimal comma, and numbers with a point: write all of them alike or, if "
                "points separate thousands, declare the source's thousands: '.'."
            )
        return (
            f"numbers in which {self.thousands!r} separates thousands, and others in which it does not: "
            "write all of them alike."
        )


_COMMA = re.compile(DECIMAL_COMMA)
_GROUPED_BY_COMMAS = re.compile(r"\s*[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?\s*")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")

DECLARE_DECIMAL = "write them with a point, or declare the source's decimal: ','"
DECLARE_THOUSANDS = "write them without, or declare the source's thousands: ','"


def describe_number_form(texts: Iterable[str]) -> str:
    """Say why numbers are text: they have a decimal comma, or separators of thousands; otherwise empty.

    Every text must be such a number or a whole one, and one must have the comma.

    >>> describe_number_form(["1", "2,5"])
    "its numbers have a decimal comma: write them with a point, or declare the source's decimal: ','"
    >>> describe_number_form(["900", "1,250"])
    "its numbers have commas between thousands: write them without, or declare the source's thousands: ','"
    >>> describe_number_form(["1", "2"]), describe_number_form(["1,5", "a"])
    ('', '')
    """
    written = list(texts)
    with_comma = [text for text in written if not _WHOLE.fullmatch(text)]
    if not with_comma:
        return ""
    if all(map(_GROUPED_BY_COMMAS.fullmatch, with_comma)):
        return f"its numbers have commas between thousands: {DECLARE_THOUSANDS}"
    return f"its numbers have a decimal comma: {DECLARE_DECIMAL}" if has_decimal_commas(written) else ""


def has_decimal_commas(texts: Iterable[str]) -> bool:
    """Return whether texts are numbers, of which some have a comma that cannot separate thousands.

    >>> has_decimal_commas(["1", "2,5"]), has_decimal_commas(["1,250"]), has_decimal_commas(["1,5", "a"])
    (True, False, False)
    """
    with_comma = [text for text in texts if not _WHOLE.fullmatch(text)]
    return all(map(_COMMA.match, with_comma)) and not all(map(_GROUPED_BY_COMMAS.fullmatch, with_comma))
