"""A model as one file of Python that needs nothing but the standard library."""

from __future__ import annotations

import inspect
from typing import Any

from dprepro.additive.export import predictor
from dprepro.additive.file import model_to_json
from dprepro.additive.model import AdditiveModel

_OF_MODEL = ("task", "classes", "target", "labels", "range", "units", "intercept")
_OF_FEATURE = (
    "name", "measured_in", "kind", "cuts", "categories", "groups", "labels", "missing_bin", "values"
)  # fmt: skip
_OF_PAIR = ("first", "second", "first_groups", "second_groups", "values")


def to_python(model: AdditiveModel) -> str:
    """Return the text of a module: `dprepro.additive.export.predictor`, and a model in it.

    ``python FILE.py new.csv`` writes predictions with all contributions as CSV. The module has
    ``predict(MODEL, row)`` for programs. The model's numbers are those of the model file.
    """
    values = model_to_json(model)
    features = [_some(feature, _OF_FEATURE) for feature in values["features"]]
    said = _some(values, _OF_MODEL)
    # Of texts, numbers, lists and dicts the representation is Python, whatever the texts hold.
    lines = [f"    {key!r}: {value!r},\n" for key, value in said.items()]
    listed = {"features": features}
    if "pairs" in values:
        listed["pairs"] = [_some(pair, _OF_PAIR) for pair in values["pairs"]]
    for name, parts in listed.items():
        lines += [f"    {name!r}: [\n", *(f"        {each!r},\n" for each in parts), "    ],\n"]
    return (
        f"{inspect.getsource(predictor)}\n\nMODEL = {{\n{''.join(lines)}}}\n"
        '\nif __name__ == "__main__":\n    main(MODEL)\n'
    )


def _some(values: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}
