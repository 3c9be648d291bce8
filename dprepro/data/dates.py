"""Dates and times as numbers: years with a fraction, or hours of a day."""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timezone

_YEAR = ("%Y", "%y", "%c", "%x")
_HOUR = ("%H", "%I", "%X")


def is_date_format(text: str) -> bool:
    """Whether a format of `datetime.strptime` has a year, or an hour of the day."""
    if not any(mark in text for mark in (*_YEAR, *_HOUR)):
        return False
    try:
        written = datetime(2001, 2, 3, 4, 5, 6, tzinfo=timezone.utc).strftime(text)
        datetime.strptime(written, text)
    except (ValueError, re.error):  # the latter where a directive is there twice
        return False
    return True


def as_number(text: str, date_format: str) -> float:
    """Return a date as years, such as 2014.5 for the middle of 2014, or a time of day as hours.

    Times within a year count by the seconds of that year; a time zone is not looked at.

    Raises
    ------
    ValueError
        If the text is not written in this format.

    Examples
    --------
    >>> as_number("2014-01-01", "%Y-%m-%d"), as_number("18:45", "%H:%M")
    (2014.0, 18.75)
    """
    found = datetime.strptime(text, date_format)
    if not any(mark in date_format for mark in _YEAR):
        return found.hour + found.minute / 60 + found.second / 3600
    return in_years(found)


def in_years(moment: datetime) -> float:
    """Return a date as a number of years with a fraction."""
    start = datetime(moment.year, 1, 1)
    days = 366 if calendar.isleap(moment.year) else 365
    passed = (moment.replace(tzinfo=None) - start).total_seconds()
    return moment.year + passed / (days * 86400)
