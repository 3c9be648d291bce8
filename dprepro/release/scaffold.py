"""New files of `dprepro new`: a config for a card, a paper, a private method with its test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from dprepro.data.card import Card
from dprepro.methods import registry
from dprepro.methods.entry import Guarantee
from dprepro.privacy.budget import PrivacyBudget
from dprepro.release.new_card import scalar
from dprepro.runtime.errors import DpreproError

_CONFIG = """\
# An experiment on {dataset}: trains these methods on splits of the rows, and scores them.
# Scores are exact functions of the rows: not covered by epsilon, and not for release.
title: {title}
dataset: {dataset}
metric: {metric}
domain: public              # bounds and categories of the card; nothing is read from the rows
splits: 10
test_share: 0.2
seed: 1                     # repeatable; `dprepro release` never uses one
{metrics}epsilons: [{epsilons}]
delta: {delta:g}
methods:
{methods}
"""
_DELTA = 1e-6
_EPSILONS = (0.5, 1, 4)
_PLUS = ("dp-ebm-plus", "", "private, and made for release")
_SOUND = ("dp-ebm-sound", "", "private: DP-EBM with a guarantee that is proved")
_EBM = ("ebm", "", "not private: what privacy costs")
_LINEAR = ("dp-linear-fair", "", "")
_METHODS = {
    "binary": (_PLUS, _SOUND, ("dp-logistic-fair", "", ""), _EBM),
    "regression": (_PLUS, _SOUND, _LINEAR, _EBM),
    "multiclass": (
        _PLUS,
        ("dp-random-forest", "", "private: random trees"),
        ("lightgbm", "", "not private: what privacy costs"),
    ),
    "counts": (
        ("dp-ebm-plus", "params: {loss: poisson}", "private: the logarithm of a count"),
        ("dp-ebm-plus", "label: as-numbers", "private: the count itself"),
        _LINEAR,
        _EBM,
    ),
}
"""Of each kind of task the methods of a new config, with further keys, and what each is."""
_METRICS = {"binary": "auc", "regression": "rmse", "multiclass": "accuracy", "counts": "rmse"}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TEMPLATES = resources.files("dprepro.release") / "template"

METHOD_TASKS = {"regression": "method", "binary": "counts"}
"""Kinds of task that a new method can be for, and the folder of the template of each."""


def config_text(card: Card, place: str, counts: bool = False) -> str:
    """Return a config for a card, which lies at `place` as seen from the config.

    With `counts` the numbers of a regression are counts, which a card cannot say.

    Raises
    ------
    DpreproError
        If there is no public domain, or if `counts` is said of what cannot be counts.
    """
    if card.features is None:
        raise DpreproError(f"the card of {card.name} gives no public domain: add `features`")
    if counts and (card.task != "regression" or (card.target_bounds or (0.0,))[0] != 0):
        raise DpreproError(
            f"--counts is for numbers from 0 to a public largest count, and the card of "
            f"{card.name} says `task: {card.task}`"
            + (f", `target_bounds: {[*card.target_bounds]}`" if card.target_bounds else "")
            + ": correct the card, or leave --counts out"
        )
    kind = "counts" if counts else card.task
    return _CONFIG.format(
        title=scalar(card.title or card.name), dataset=scalar(place), metric=_METRICS[kind],
        metrics="metrics: [mean_poisson_deviance]  # of predictions above 0\n" if counts else "",
        delta=_DELTA, epsilons=", ".join(map(str, _EPSILONS)),
        methods="\n".join(_line(card, *each) for each in _METHODS[kind] if _takes(each[0], card)),
    )  # fmt: skip


def _takes(name: str, card: Card) -> bool:
    """Whether a method takes the rows of a card: some have no place for missing numbers."""
    features = (card.features or {}).items()
    lack = any(f.numeric and f.missing and name not in card.fill for name, f in features)
    return not lack or registry.get(name).encoding != "one-hot"


def _line(card: Card, name: str, keys: str, what: str) -> str:
    """Return the line of a method of a config, with further keys, and a comment."""
    if not _can_protect(name, card):
        keys += f"{', ' if keys else ''}rows_per_unit: 1"
        what += f"{'; ' if what else ''}cannot protect several rows: one of each unit trains"
    entry = f"{{method: {name}, {keys}}}" if keys else name
    return f"  - {entry:<23} # {what}" if what else f"  - {entry}"


def _can_protect(name: str, card: Card) -> bool:
    """Whether a method can give its guarantee to the units of a card."""
    if card.unit is None or card.rows_per_unit is None:
        return True
    method = registry.get(name)
    if method.guarantee is Guarantee.NONE:
        return True
    try:
        for epsilon in _EPSILONS:
            method.row_budget(PrivacyBudget(epsilon, _DELTA), card.unit, card.rows_per_unit)
    except ValueError:
        return False
    return True


def method_files(name: str, task: str = "regression") -> Mapping[str, str]:
    """Return the files of a new private method, by their names within its package.

    For regression it predicts the noisy mean of the target, for two classes by naive Bayes of noisy
    counts: a small method that keeps its guarantee, to be changed step by step. It has the shape of
    a folder of `dprepro.methods`: entry, estimator, curator and audit case, and beside them a test.

    Raises
    ------
    DpreproError
        If the name is not one for a method.
    """
    if not _NAME.fullmatch(name):
        raise DpreproError(
            f"a method is called by small letters, digits and hyphens, such as noisy-mean; given "
            f"{name!r}"
        )
    module = package_of(name)
    words = {"@NAME@": name, "@MODULE@": module, "@CLASS@": name.title().replace("-", "")}
    parts = {
        "__init__.py": "entry.txt",
        "estimator.py": "estimator.txt",
        "curator.py": "curator.txt",
        "audit.py": "audit.txt",
        f"test_{module}.py": "test.txt",
    }
    folder = METHOD_TASKS[task]
    return {file: _filled(f"{folder}/{part}", words) for file, part in parts.items()}


def paper_files(name: str) -> Mapping[str, str]:
    """Return the files of a new paper, by their names in its folder: an example to be replaced.

    Raises
    ------
    DpreproError
        If the name is not one for a paper.
    """
    if not _NAME.fullmatch(name):
        raise DpreproError(
            "a paper is called by small letters, digits and hyphens, such as smith-2026; given "
            f"{name!r}"
        )
    parts = {"paper.yaml": "paper.txt", "cells.csv": "cells.txt", "claims.yaml": "claims.txt"}
    return {file: _filled(f"paper/{part}", {"@NAME@": name}) for file, part in parts.items()}


def package_of(name: str) -> str:
    """Return the name of the package of a method."""
    return name.replace("-", "_")


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = (_TEMPLATES / template).read_text("utf-8")
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text


def write_new(files: Mapping[Path, str], force: bool) -> None:
    """Write files, none of them over another unless `force`.

    Raises
    ------
    DpreproError
        If one exists, or cannot be written; in the first case nothing is written.
    """
    existing = [path for path in files if path.exists() or path.is_symlink()]
    if existing and not force:
        raise DpreproError(
            f"{', '.join(map(str, existing))}: exists already. Choose another place, or replace it "
            "with --force"
        )
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise DpreproError(f"cannot write {path}: {error.strerror or error}") from error
