"""A release that spends and writes nothing: found before its budget is booked."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprepro.additive import file as model_files
from dprepro.additive.file import ALLOWANCE, load_model
from dprepro.privacy.ledger import tracking_noise
from dprepro.release import budget_book, folder
from dprepro.release.budget_book import book_path, read_book
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro

_ROWS = 60


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def card_of(
    place: Path,
    features: dict[str, str],
    columns: dict[str, Any],
    target: str = 'positive: "1"\nlabels: ["0", "1"]',
    y: Any = None,
) -> Path:
    """Write a table and its card; `features` are as the card has them."""
    place.mkdir(exist_ok=True)
    y = np.arange(_ROWS) % 2 if y is None else y
    lines = zip(*columns.values(), y, strict=True)
    text = "\n".join([",".join([*columns, "y"]), *(",".join(map(str, line)) for line in lines)])
    (place / "rows.csv").write_text(text + "\n")
    task = "binary" if "positive" in target else "regression"
    listed = "\n".join(f"  {json.dumps(name)}: {said}" for name, said in features.items())
    card = place / "card.yaml"
    card.write_text(
        f"name: card\ntask: {task}\nfile: rows.csv\ntarget: y\n{target}\nfeatures:\n{listed}\n"
    )
    return card


def numbers_in(place: Path, bounds: tuple[float, float], **more: Any) -> Path:
    values = [repr(float(v)) for v in np.linspace(*bounds, _ROWS)]
    said = f"{{numeric: [{bounds[0]!r}, {bounds[1]!r}]}}"
    return card_of(place, {"x": said}, {"x": values}, **more)


def study_of(card: Path, method: dict[str, Any], epsilon: float = 1) -> Path:
    """Write a config of a card, to fit one method at one epsilon."""
    config = card.with_name("study.yaml")
    keys = {"dataset": str(card), "metric": "auc", "domain": "public", "epsilons": [epsilon]}
    config.write_text(json.dumps({**keys, "splits": 1, "seed": None, "methods": [method]}))
    return config


def release(card: Path, *options: object) -> str:
    out = card.with_name("out")
    given = ("--epsilon", 1, "--delta", "1e-5", "--yes", "-o", out)
    return dprepro("release", card, *given, *options)


def refused(card: Path, *options: object, match: str) -> str:
    """Return the message of a release that changes no byte of the book and leaves no file."""
    release(numbers_in(card.parent / "earlier", (0.0, 1.0)))
    before = book_path().read_bytes()
    with pytest.raises(DpreproError, match=match) as caught:
        release(card, *options)
    assert book_path().read_bytes() == before
    assert not list(card.parent.glob("*out*"))
    assert not list(card.parent.glob(".*out*"))
    return str(caught.value)


@pytest.mark.parametrize(
    "bounds", [(1.7e18, 1.7e18 + 256), (1e15, 1e15 + 1), (1.0, np.nextafter(1, 2)), (0.0, 5e-324)]
)
def test_bounds_too_close_for_distinct_cuts_are_released(
    tmp_path: Path, bounds: tuple[float, float]
) -> None:
    card = numbers_in(tmp_path / "close", (float(bounds[0]), float(bounds[1])))
    release(card, "--method", "dp-ebm-sound")
    (term,) = load_model(card.with_name("out") / "model.json").bins_
    assert (np.diff(term.cuts) > 0).all()
    assert [entry.status for entry in read_book().entries] == ["released"]


@pytest.mark.parametrize("method", ["dp-ebm-plus", "dp-ebm-sound"])
def test_target_bounds_without_room_in_a_file_spend_nothing(tmp_path: Path, method: str) -> None:
    y = np.linspace(-1e265, 1e265, _ROWS)
    target = "target_bounds: [-1.0e+265, 1.0e+265]"
    card = numbers_in(tmp_path / "huge", (0.0, 1.0), target=target, y=y)
    said = refused(card, "--method", method, match=r"the target's bounds go beyond 7\.9e\+261")
    assert "divide the target and its bounds by a constant" in said


def test_a_model_larger_than_files_may_be_spends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model of the fit would have been a tenth of the largest."""
    small = numbers_in(tmp_path / "small", (0.0, 1.0))
    release(small)
    written = (small.with_name("out") / "model.json").stat().st_size
    before = book_path().read_bytes()
    monkeypatch.setattr(model_files, "MAX_BYTES", 2 * written + ALLOWANCE)
    with pytest.raises(DpreproError, match="its file could have 0 MiB, and no file of more"):
        release(numbers_in(tmp_path / "large", (0.0, 1.0)))
    assert book_path().read_bytes() == before


def test_a_form_of_export_that_the_model_cannot_have_has_to_be_accepted(tmp_path: Path) -> None:
    features = {"a": "{numeric: [0, 1]}", "A": "{numeric: [0, 1]}"}
    columns = {name: np.linspace(0, 1, _ROWS) for name in features}
    card = card_of(tmp_path / "case", features, columns)
    said = refused(card, match="could not be exported to sql: the names of columns 'a' and 'A'")
    assert "accept that with --allow-no-export. Nothing was spent and nothing was written" in said
    release(card, "--allow-no-export")
    assert "agree" in dprepro("verify", card.with_name("out"))


def test_a_monotone_feature_that_the_card_does_not_have_spends_nothing(tmp_path: Path) -> None:
    card = numbers_in(tmp_path / "monotone", (0.0, 1.0))
    method = {"method": "dp-ebm-sound", "params": {"monotone": {"age": "increasing"}}}
    given = ("--method", "dp-ebm-sound", "--config", study_of(card, method))
    refused(card, *given, match="monotone: the model has no feature 'age'")


def test_a_disk_without_room_for_the_largest_release_spends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = folder.StagingFolder._fill

    def full(self: folder.StagingFolder, size: int) -> None:
        if size > 10_000:  # of the rehearsal
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fill(self, size)

    release(numbers_in(tmp_path / "first", (0.0, 1.0)))
    monkeypatch.setattr(folder.StagingFolder, "_fill", full)
    before = book_path().read_bytes()
    with pytest.raises(DpreproError, match=r"No space left on device\. Nothing was spent"):
        release(numbers_in(tmp_path / "full", (0.0, 1.0)))
    assert book_path().read_bytes() == before
    assert not list((tmp_path / "full").glob(".*out*"))


def test_a_book_that_fails_after_the_fit_leaves_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise DpreproError("cannot use the budget book")

    monkeypatch.setattr("dprepro.release.publish.settle", broken)
    card = numbers_in(tmp_path / "book", (0.0, 1.0))
    with pytest.raises(DpreproError, match="the model lies in") as caught:
        release(card)
    place = Path(str(caught.value).rpartition("the model lies in ")[2])
    assert load_model(place / "model.json").n_features_in_ == 1
    assert [entry.counts for entry in read_book().entries] == [True]
    assert not card.with_name("out").exists()


def test_the_disk_is_let_go_before_the_model_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    settle = budget_book.settle

    def settled(name: str, status: Any, **found: object) -> None:
        out = next(tmp_path.rglob("model.json"))
        held.append(out.with_name(".room").exists())
        settle(name, status, **found)

    monkeypatch.setattr("dprepro.release.publish.settle", settled)
    release(numbers_in(tmp_path / "held", (0.0, 1.0)))
    assert held == [False, False]  # as the fit ends, and as the release is written


@pytest.mark.parametrize(
    ("method", "epsilon", "output", "match"),
    [
        ("dp-ebm-plus", 1, "closed/model.json", "cannot write"),
        ("dp-ebm-plus", 1e5, "model.json", "more than any promise of privacy"),
        ("dp-ebm-classic", 1e5, "model.json", "more than any promise of privacy"),
        ("dp-ebm-plus", 1, "n" * 300, "cannot write"),
    ],
)
def test_fit_draws_no_noise_for_a_model_that_it_cannot_save(
    tmp_path: Path, method: str, epsilon: float, output: str, match: str
) -> None:
    card = numbers_in(tmp_path / "fit", (0.0, 1.0))
    (tmp_path / "closed").symlink_to("/proc/self")
    config = study_of(card, {"method": method}, epsilon)
    with tracking_noise() as may_have_drawn, pytest.raises(DpreproError, match=match):
        dprepro("fit", config, "--method", method, "--output", tmp_path / output)
    assert not may_have_drawn()
    assert not (tmp_path / "model.json").exists()
