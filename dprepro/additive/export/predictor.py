"""Predictions from a model file by Python's standard library alone.

`dprepro export --to python` writes this file with a model in it. It also reads a model file itself:
``predict(json.load(open("model.json")), {"age": 39, "job": "clerk"})``. If a row
does not fit the model, it raises a ValueError, which quotes no value. ``notes`` names the features
whose value the model does not know, in the words of `dprepro predict`.
"""

import csv
import math
import os
import re
import sys
from bisect import bisect_right
from decimal import Decimal
from numbers import Real

MISSING = ("", "?", "NA", "NaN", "nan", "null")
"""Texts that stand for a missing value, where they are no categories. One that reads as a number,
such as -200, stands for the number, however it is written."""

NUMBERS = (Real, Decimal)
SPELLINGS = {True: ("true", "t", "yes", "y"), False: ("false", "f", "no", "n")}
QUOTE_BEHIND_BLANK = re.compile(r'\s+"')
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NO_NUMBER = re.compile(r"[+-]?nan", re.IGNORECASE)


def number_of(x):  # type: ignore[no-untyped-def]
    """Return the number that a value is, or that a text reads as; None if there is none."""
    if isinstance(x, str):
        return float(x) if NUMBER.fullmatch(x.strip()) else None
    try:
        return float(x) if isinstance(x, NUMBERS) else None
    except (OverflowError, ValueError):
        return None


def placed(feature, x):  # type: ignore[no-untyped-def]
    """Return the number of the bin that a value lies in, and what of the value is unknown.

    The number is None where there is no such bin; the text is empty where all is known.
    """
    if hasattr(x, "item"):  # a number of NumPy's
        x = x.item()
    absent = feature["missing_bin"], "missing" if feature["missing_bin"] is None else ""
    if x is None or x != x:
        return absent
    if feature["kind"] == "numeric":
        number = read_number(feature["name"], x)
        if number is None:
            return absent
        below, above = number < feature["lower"], number > feature["upper"]
        unknown = "below its bounds" if below else "above its bounds" if above else ""
        return bisect_right(feature["cuts"], number), unknown
    names = feature["categories"]
    position = category_of(names, x)
    if position is not None:
        return feature["groups"][position], ""
    marks = [mark for mark in MISSING if mark not in names]
    # Blanks around a mark are no part of it, even where they are one of categories.
    if not isinstance(x, bool) and (str(x).strip() in marks or number_of(x) in numbers_in(marks)):
        return absent
    labels = feature["labels"]
    return labels.index("(other)") if "(other)" in labels else None, "unknown category"


def category_of(names, x):  # type: ignore[no-untyped-def]
    """Return the position of the category that a value is; None if it is none of them.

    A number is the first that reads as this number, and a Boolean the only one that spells it.
    """
    if isinstance(x, bool) and str(x) not in names:
        found = [k for k, name in enumerate(names) if name.strip().lower() in SPELLINGS[x]]
        return found[0] if len(found) == 1 else None
    if isinstance(x, NUMBERS) and not isinstance(x, bool):
        return next((k for k, name in enumerate(names) if reads_as(name, number_of(x))), None)
    text = as_compared(names, x)
    return names.index(text) if text in names else None


def as_compared(names, x):  # type: ignore[no-untyped-def]
    """Return a text without blanks around it, unless a category has some."""
    ignores_blanks = all(name == name.strip() for name in names)
    return str(x).strip() if ignores_blanks else str(x)


def reads_as(name, number):  # type: ignore[no-untyped-def]
    """Return whether a category reads as a number."""
    try:
        return float(name) == number
    except ValueError:
        return False


def numbers_in(marks):  # type: ignore[no-untyped-def]
    """Return the numbers among the texts that stand for a missing value."""
    return [number for number in map(number_of, marks) if number is not None]


def read_number(name, x):  # type: ignore[no-untyped-def]
    """Return a number, or that of a text that reads as one; None if it is missing."""
    if isinstance(x, str) and (x.strip() in MISSING or NO_NUMBER.fullmatch(x.strip())):
        return None
    number = number_of(x)
    if number is None or math.isinf(number):
        raise ValueError(
            f"column {name!r} is to hold numbers, but holds text or an infinite value. A number "
            "has digits and a decimal point, no comma and no unit. Missing is an empty field, or "
            f"one of: {', '.join(filter(None, MISSING))}"
        )
    return None if number in numbers_in(MISSING) else number


def predict(model, row):  # type: ignore[no-untyped-def]
    """Return what a model says of a row, a dict of values by the names of features."""
    return said(model, read(model, row))


def read(model, row):  # type: ignore[no-untyped-def]
    """Return by the names of features what `placed` says of a row's values."""
    found = {}
    for feature in model["features"]:
        name = feature["name"]
        if name not in row:
            raise ValueError(f"there is no column {name!r}, which the model needs")
        found[name] = placed(feature, row[name])
    return found


def said(model, found):  # type: ignore[no-untyped-def]
    """Return what a model says of a row that was read."""
    if model["task"] == "multiclass":
        return said_of_classes(model, found)
    power = model["units"]
    parts = {"intercept": model["intercept"] * 2.0 ** power["intercept"]}
    for feature in model["features"]:
        b, _ = found[feature["name"]]
        value = 0 if b is None else feature["values"][b]
        parts["contribution of " + feature["name"]] = value * 2.0 ** power["functions"]
    for pair in model.get("pairs", []):
        first, second = found[pair["first"]][0], found[pair["second"]][0]
        value = 0
        if first is not None and second is not None:
            width = max(pair["second_groups"]) + 1
            cell = pair["first_groups"][first] * width + pair["second_groups"][second]
            value = pair["values"][cell]
        name = "contribution of " + pair["first"] + " & " + pair["second"]
        parts[name] = value * 2.0 ** power["functions"]
    score = math.fsum(parts.values())
    notes = "; ".join(f"{name}: {what}" for name, (_, what) in found.items() if what)
    if model["task"] == "regression":
        value = math.exp(min(score, 700)) if model.get("link") == "log" else score
        lower, upper = model["range"] or (value, value)
        return {
            "prediction": min(max(value, lower), upper), "sum": score, **parts, "notes": notes
        }  # fmt: skip
    odds = math.exp(-abs(score))
    names = model.get("labels") or model["classes"]
    return {
        "prediction": names[score > 0],
        "probability": (1 if score > 0 else odds) / (1 + odds),
        "log_odds": score,
        **parts,
        "notes": notes,
    }


def said_of_classes(model, found):  # type: ignore[no-untyped-def]
    """Return what a model of several classes says of a row that was read.

    Scores and contributions are those of the likeliest class.
    """
    names = list(map(str, model.get("labels") or model["classes"]))
    of_intercept, unit = (2.0 ** model["units"][key] for key in ("intercept", "functions"))
    parts = {"intercept": [value * of_intercept for value in model["intercept"]]}
    for feature in model["features"]:
        b, _ = found[feature["name"]]
        values = [0] * len(names) if b is None else feature["values"][b]
        parts["contribution of " + feature["name"]] = [value * unit for value in values]
    scores = [math.fsum(each) for each in zip(*parts.values())]  # noqa: B905
    largest = max(scores)
    place = scores.index(largest)
    powers = [math.exp(score - largest) for score in scores]
    return {
        "prediction": names[place],
        **{"probability of " + name: each / sum(powers) for name, each in zip(names, powers)},  # noqa: B905
        "log_odds": largest,
        **{name: values[place] for name, values in parts.items()},
        "notes": "; ".join(f"{name}: {what}" for name, (_, what) in found.items() if what),
    }


def lines(model, path, counts):  # type: ignore[no-untyped-def]
    """Yield what is to be written for a CSV: names with the first row, then row after row.

    `counts`, a dict, gets the number of rows by (feature, what of it is unknown), and of all rows
    by None. What is wrong with the file is a ValueError of one line, which quotes no value.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
            rows = records(file)
            line, columns = next(rows, (1, ()))
            # As `dprepro predict` compares them: without blanks around, a line break as one blank.
            columns = [re.sub(r"\s*[\r\n]+\s*", " ", name.strip()) for name in columns]
            names = header(model, columns, line)
            for line, fields in rows:
                try:
                    if len(fields) != len(columns):
                        raise ValueError(
                            "the number of fields is not that of the first line; a text with a "
                            "comma needs quotes"
                        )
                    if any(map(QUOTE_BEHIND_BLANK.match, fields)):
                        raise ValueError("there is a blank before a quote: remove the blank")
                    found = read(model, dict(zip(columns, fields)))  # noqa: B905
                except ValueError as error:
                    raise ValueError(f"line {line}: {error}") from None
                for key in (None, *((name, what) for name, (_, what) in found.items() if what)):
                    counts[key] = counts.get(key, 0) + 1
                if names:
                    yield names
                    names = None
                yield list(said(model, found).values())
            if names:
                yield names
    except UnicodeDecodeError:
        raise ValueError(
            "its bytes are not text in UTF-8; save it as UTF-8, as CSV and not packed"
        ) from None


def records(file):  # type: ignore[no-untyped-def]
    """Yield the records of a CSV that are not empty: the number of the first line, the fields."""
    read = []

    def noted():  # type: ignore[no-untyped-def]
        for text in file:
            read.append(text)
            yield text

    reader = csv.reader(noted(), strict=True)
    done = empty = width = 0
    try:
        for fields in reader:
            if fields:
                if empty and width == 1:
                    raise ValueError(
                        f"line {empty}: it is empty, and the table has one column: take it out, or "
                        'write a missing value as ""'
                    )
                if any("\0" in field for field in fields):
                    raise ValueError(f"line {done + 1}: a NUL byte is no text")
                yield done + 1, fields
                width = width or len(fields)
            elif width:
                empty = empty or done + 1
            done = reader.line_num
            read.clear()
    except csv.Error as error:
        line, problem = reader.line_num, "cannot be read as CSV"
        opened = line_of_quote(read)
        if "expected after" in str(error):
            problem = "a text goes on behind its closing quote; within a text, write quotes twice"
        elif opened is not None:
            line = done + 1 + opened
            problem = (
                "a quote is opened and not closed, or only very far behind; close it, or leave it "
                "out"
            )
        raise ValueError(f"line {line}: {problem}") from None


def line_of_quote(texts):  # type: ignore[no-untyped-def]
    """Return the position of the line with the quote that is open at the end; None if none is."""
    opened = closed = None
    before = ","
    for k, text in enumerate(texts):
        for sign in text:
            if sign != '"':
                before = sign
            elif opened is not None:
                opened, closed, before = None, opened, "closed"
            elif before == "closed":  # two quotes are one of the text that goes on
                opened = closed
            elif before in ",\r\n":
                opened = k
    return opened


def header(model, columns, line):  # type: ignore[no-untyped-def]
    """Return the names of what is written, if a CSV has the columns that the model needs."""
    if not columns:
        raise ValueError("line 1 is empty: it must name the columns")
    for feature in model["features"]:
        if columns.count(feature["name"]) > 1:
            name = feature["name"]
            raise ValueError(
                f"line {line}: column {name!r} is there more than once; rename the others"
            )
    try:
        return list(predict(model, dict.fromkeys(columns)))
    except ValueError as error:
        advice = "the first line must name the columns, with commas between them"
        raise ValueError(f"line {line}: {error}; {advice}") from None


def main(model):  # type: ignore[no-untyped-def]
    """Write predictions for the rows of a CSV, named on the command line, to standard output."""
    usage = f"usage: python {sys.argv[0]} NEW.csv > PREDICTIONS.csv"
    if len(sys.argv) != 2:
        print(usage, file=sys.stderr)
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    counts = {}  # type: ignore[var-annotated]
    try:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines(model, sys.argv[1], counts))
        sys.stdout.flush()
        rows = counts.pop(None, 0)
        for (name, what), count in counts.items():
            shown = "".join(c if c.isprintable() else "\ufffd" for c in name)
            print(f"{shown}: {what} in {count} of {rows} rows", file=sys.stderr)
    except ValueError as error:
        print(f"error: {sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        what = f"{error.filename}: cannot be read" if error.filename else "cannot read or write"
        more = f"; {usage}" if error.filename else ""
        print(f"error: {what}: {error.strerror}{more}", file=sys.stderr)
        os._exit(2)  # without another try to write
