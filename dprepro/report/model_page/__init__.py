"""What the page of a model shows: a pure function of the model, which is all that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dprepro.privacy.budget import ROW
from dprepro.release.guarantee_words import titled
from dprepro.report.ledgers import answer_heads, answers, said_beside, spending, verdict
from dprepro.report.web import render_alone

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel
    from dprepro.privacy.ledger import Ledger

SCRIPTS = (
    "file.js", "classes.js", "edits.js", "axes.js", "chart.js", "pairs.js", "prediction.js",
    "pointing.js", "editor.js", "start.js",
)  # fmt: skip
"""In the order in which they build on each other."""

NO_LEDGER = "The file has no ledger: it promises no privacy."


@dataclass(frozen=True)
class Guarantee:
    """What the ledger of a model says: in words, as a table of noisy answers, the rest as `said`.

    `spending` is empty without a ledger. `said` has headings, each with its lines.
    """

    verdict: str
    holds: bool
    spending: str = ""
    heads: tuple[str, ...] = ()
    answers: tuple[tuple[str, ...], ...] = ()
    said: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Content:
    """The page, part by part.

    Attributes
    ----------
    axis, unit
        What functions and their sum are measured in: "log odds of >50K", or the target; and the
        unit alone.
    features, pairs, classes
        How many features, and functions of pairs of them, there are; and how many classes, if the
        model has several, else 0.
    warning, origin
        What the file says of why the model is not for release, and of how it came about.
    link
        Of a model of counts, in a sentence, how its sum becomes a prediction; else empty.
    bands, intervals
        In sentences, what the bands are and are not, and how near targets are to predictions; empty
        if the noise is not known, and if that was not released.
    data
        What the script works with, as JSON that is safe within HTML.
    """

    title: str
    axis: str
    unit: str
    features: int
    pairs: int
    classes: int
    link: str
    warning: str
    guarantee: Guarantee
    origin: tuple[tuple[str, str], ...]
    bands: tuple[str, ...]
    intervals: tuple[str, ...]
    data: Markup


def model_page(
    model: AdditiveModel,
    title: str,
    name: str = "model.json",
    origin: Mapping[str, Any] | None = None,
    unit_title: str = "",
) -> str:
    """Return one HTML page that shows a fitted or loaded model and edits it, and needs no network.

    Nothing but the model is read. What the page downloads is a model file with the edits made
    there, called after the model file's `name`; without any it is the file that
    `dprepro.additive.file.save_model` writes, with its `origin`. `unit_title` is what people call
    the unit of the guarantee; empty: its column names it.

    Raises DpreproError if the model holds what a model file cannot.
    """
    content = content_of(model, title, name, origin, unit_title)
    return render_alone("dprepro.report.model_page", {"page": content}, SCRIPTS)


def content_of(
    model: AdditiveModel,
    title: str,
    name: str,
    origin: Mapping[str, Any] | None = None,
    unit_title: str = "",
) -> Content:
    """Return what the page of a model shows; see `model_page`."""
    from dprepro.additive.describe import (
        bands_in_words,
        intervals_in_words,
        link_in_words,
        measure_of,
        unit_of,
    )
    from dprepro.additive.file import model_to_json
    from dprepro.additive.record import checked_record
    from dprepro.estimators.contract import ledger_of

    values = model_to_json(model, origin)
    checked_record(values, "cannot show the model")
    ledger = ledger_of(model)
    return Content(
        title=title,
        axis=measure_of(model),
        unit=unit_of(model),
        features=len(model.bins_),
        pairs=len(model.pairs_),
        classes=len(model.class_names) if model.several_classes else 0,
        link=" ".join(link_in_words(model)),
        warning=str(values["origin"].get("not_for_release", "")),
        guarantee=Guarantee(NO_LEDGER, False)
        if ledger is None
        else _guarantee(titled(ledger, unit_title)),
        origin=tuple(_facts(values["origin"], unit_title)),
        bands=tuple(bands_in_words(model)),
        intervals=tuple(intervals_in_words(model)),
        data=embedded(_data(model, values, name)),
    )


def embedded(data: Any) -> Markup:
    """Return JSON values as text that ends no script element and starts no comment or tag."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _guarantee(ledger: Ledger) -> Guarantee:
    return Guarantee(
        verdict(ledger),
        ledger.holds,
        spending(ledger),
        tuple(answer_heads(ledger)),
        tuple(map(tuple, answers(ledger))),
        tuple((heading, tuple(lines)) for heading, lines in said_beside(ledger)),
    )


def _facts(origin: Mapping[str, Any], unit_title: str) -> Iterator[tuple[str, str]]:
    for key, value in origin.items():
        if isinstance(value, Mapping):
            yield from _facts(value, unit_title)
        elif key == "unit" and value != ROW and unit_title:
            yield key, unit_title
        elif value is not None:
            text = json.dumps(value) if isinstance(value, list) else str(value)
            yield key.replace("_", " "), text


def _data(model: AdditiveModel, values: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what the script works with.

    ``pieces`` is the text of the model file with holes for ``values``, a list for each feature and
    then for each pair, and for ``edits``. ``units`` are what its whole numbers count in, ``order``
    the positions of features from the most important on, with their ``importance`` by position.
    """
    from dprepro.additive.bins import OTHER
    from dprepro.additive.describe import measure_of, outcome_of, unit_of
    from dprepro.additive.file import MAX_BYTES
    from dprepro.additive.shapes import importance, shapes_of

    shapes = shapes_of(model)
    importances = [importance(shape) for shape in shapes if shape.sides is None]
    return {
        "pieces": with_holes(values),
        "values": [term["values"] for term in (*values["features"], *values.get("pairs", ()))],
        "pairs": [
            {
                "name": shape.name,
                "sides": [side.labels for side in shape.sides],
                "places": [term.pair.first, term.pair.second],
            }
            for shape, term in zip(shapes[len(importances) :], model.pairs_, strict=True)
            if shape.sides is not None
        ],
        "edits": values["edits"],
        "units": {key: 2.0**power for key, power in values["units"].items()},
        "order": sorted(range(len(importances)), key=lambda k: -importances[k]),
        "importance": importances,
        "axis": measure_of(model),
        "unit": unit_of(model),
        "outcome": outcome_of(model),
        "classes": list(model.class_names) if model.several_classes else [],
        "other": OTHER,
        "file": f"{name.removesuffix('.json')}-edited.json",
        "largest": MAX_BYTES,
    }


def with_holes(values: dict[str, Any]) -> list[str]:
    """Return the text of a model file without the values of its functions and without its edits.

    The K + P + 2 pieces are what stands before the values of each of the K features and P pairs,
    before the edits, and behind them.
    """
    from dprepro.additive.file import file_text

    text, hole = file_text(values), "@"
    while hole in text:
        hole += "@"
    terms = {
        key: [{**term, "values": hole} for term in values[key]]
        for key in ("features", "pairs")
        if key in values
    }
    return file_text({**values, **terms, "edits": hole}).split(json.dumps(hole))
