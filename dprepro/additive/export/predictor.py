"""Predictions from a model file by Python's standard library alone.

`dprepro export --to python` writes this file with a model in it. It also reads a model file itself:
``predict(json.load(open("model.json")), {"age": 39, "job": "clerk"})``.
"""

import csv
import math
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
        return bisect_right(feature["cuts"], float(x))
    if text in names:
        return feature["groups"][names.index(text)]
    return feature["labels"].index("(other)") if "(other)" in feature["labels"] else None


def predict(model, row):  # type: ignore[no-untyped-def]
    """Return what a model says of a row, a dict of values by the names of features."""
    power = model["units"]
    parts = {"intercept": model["intercept"] * 2.0 ** power["intercept"]}
    found = {}
    for feature in model["features"]:
        b = found[feature["name"]] = bin_of(feature, row[feature["name"]])
        value = 0 if b is None else feature["values"][b]
        parts["contribution of " + feature["name"]] = value * 2.0 ** power["functions"]
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


def main(model):  # type: ignore[no-untyped-def]
    """Write predictions for the rows of a CSV, named on the command line, to standard output."""
    usage = "usage: python " + sys.argv[0] + " NEW.csv > PREDICTIONS.csv"
    if len(sys.argv) != 2:
        sys.exit(usage)
    try:
        opened = open(sys.argv[1], newline="", encoding="utf-8-sig")  # noqa: PTH123, SIM115
    except OSError as error:
        sys.exit(sys.argv[1] + ": cannot be read: " + str(error.strerror) + "; " + usage)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    with opened as rows:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        for number, row in enumerate(csv.DictReader(rows)):
            said = predict(model, row)
            if number == 0:
                writer.writerow(said)
            writer.writerow(said.values())
