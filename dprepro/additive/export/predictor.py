"""Predictions from a model file by Python's standard library alone.

`dprepro export --to python` writes this file with a model in it. It also reads a model file itself:
``predict(json.load(open("model.json")), {"age": 39, "job": "clerk"})``. If a row
does not fit the model, it raises a ValueError, which quotes no value.
"""

import csv
import math
import os
import sys
from bisect import bisect_right

MISSING = ("", "?", "NA", "NaN", "nan", "null")
"""Texts that stand for a missing value, where they are no categories."""


def bin_of(feature, x):  # type: ignore[no-untyped-def]
    """Return the number of the bin that a value lies in; None where there is no such bin."""
    text = str(x)
    names = feature.get("categories", [])
    if all(name == name.strip() for name in names):
        text = text.strip()
    if x is None or x != x or (text in MISSING and text not in names):
        return feature["missing_bin"]
    if feature["kind"] == "numeric":
        return numeric_bin(feature, x)
    if text in names:
        return feature["groups"][names.index(text)]
    return feature["labels"].index("(other)") if "(other)" in feature["labels"] else None


def numeric_bin(feature, x):  # type: ignore[no-untyped-def]
    """Return the number of the bin of a number, or of a text that reads as one."""
    try:
        number = float(x)
    except (OverflowError, TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        name = feature["name"]
        raise ValueError(
            f"column {name!r} is to hold numbers, but holds text or an infinite value. Missing is "
            f"an empty field, or one of: {', '.join(filter(None, MISSING))}"
        )
    return bisect_right(feature["cuts"], number) if number == number else feature["missing_bin"]


def predict(model, row):  # type: ignore[no-untyped-def]
    """Return what a model says of a row, a dict of values by the names of features."""
    power = model["units"]
    parts = {"intercept": model["intercept"] * 2.0 ** power["intercept"]}
    found = {}
    for feature in model["features"]:
        name = feature["name"]
        if name not in row:
            raise ValueError(f"there is no column {name!r}, which the model needs")
        b = found[name] = bin_of(feature, row[name])
        value = 0 if b is None else feature["values"][b]
        parts["contribution of " + name] = value * 2.0 ** power["functions"]
    for pair in model.get("pairs", []):
        first, second = found[pair["first"]], found[pair["second"]]
        value = 0
        if first is not None and second is not None:
            width = max(pair["second_groups"]) + 1
            cell = pair["first_groups"][first] * width + pair["second_groups"][second]
            value = pair["values"][cell]
        name = "contribution of " + pair["first"] + " & " + pair["second"]
        parts[name] = value * 2.0 ** power["functions"]
    score = math.fsum(parts.values())
    if model["task"] == "regression":
        lower, upper = model["range"] or (score, score)
        return {"prediction": min(max(score, lower), upper), "sum": score, **parts}
    odds = math.exp(-abs(score))
    names = model.get("labels") or model["classes"]
    return {
        "prediction": names[score > 0],
        "probability": (1 if score > 0 else odds) / (1 + odds),
        "log_odds": score,
        **parts,
    }


def lines(model, path):  # type: ignore[no-untyped-def]
    """Yield what is to be written for a CSV: names with the first row, then row after row.

    What is wrong with the file is a ValueError of one line, which quotes no value.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
            rows = csv.DictReader(file)
            names = header(model, rows.fieldnames)
            for row in rows:
                try:
                    if None in row or None in row.values():
                        raise ValueError(
                            "the number of fields is not that of the first line; a text with a "
                            "comma needs quotes"
                        )
                    said = predict(model, row)
                except ValueError as error:
                    raise ValueError(f"line {rows.line_num}: {error}") from None
                if names:
                    yield names
                    names = None
                yield list(said.values())
            if names:
                yield names
    except UnicodeDecodeError:
        raise ValueError("its bytes are not text in UTF-8; save it as UTF-8") from None
    except csv.Error:
        raise ValueError(f"line {rows.reader.line_num}: cannot be read as CSV") from None


def header(model, columns):  # type: ignore[no-untyped-def]
    """Return the names of what is written, if a CSV has the columns that the model needs."""
    if not columns:
        raise ValueError("line 1 is empty: it must name the columns")
    for feature in model["features"]:
        if columns.count(feature["name"]) > 1:
            name = feature["name"]
            raise ValueError(f"line 1: column {name!r} is there more than once; rename the others")
    try:
        return list(predict(model, dict.fromkeys(columns)))
    except ValueError as error:
        advice = "the first line must name the columns, with commas between them"
        raise ValueError(f"line 1: {error}; {advice}") from None


def main(model):  # type: ignore[no-untyped-def]
    """Write predictions for the rows of a CSV, named on the command line, to standard output."""
    usage = f"usage: python {sys.argv[0]} NEW.csv > PREDICTIONS.csv"
    if len(sys.argv) != 2:
        print(usage, file=sys.stderr)
        sys.exit(2)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    try:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines(model, sys.argv[1]))
        sys.stdout.flush()
    except ValueError as error:
        print(f"error: {sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        what = f"{error.filename}: cannot be read" if error.filename else "cannot read or write"
        more = f"; {usage}" if error.filename else ""
        print(f"error: {what}: {error.strerror}{more}", file=sys.stderr)
        os._exit(2)  # without another try to write
