from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dprepro.additive.file import load_model
from dprepro.additive.model import AdditiveModel
from dprepro.experiment.config import load_config
from dprepro.experiment.record import Task
from dprepro.release.fitting import choose_one, fit_model
from dprepro.release.provenance import local_notes_path, save_fitted, trained_on
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.lab import Lab

METHODS = [{"method": "dp-ebm-gdp", "params": {"n_epochs": 2}}, "ebm"]


def fitted(lab: Lab, method: str = "dp-ebm-gdp") -> tuple[AdditiveModel, Task]:
    config = load_config(lab.config(methods=METHODS, epsilons=[4], domain="public"))
    task = choose_one(config, method, split=1)
    return fit_model(config, task), task


def make_public(lab: Lab) -> None:
    import hashlib

    digest = hashlib.sha256((lab.folder / "tiny.csv").read_bytes()).hexdigest()
    card = lab.folder / "tiny.yaml"
    source = f"sources: [{{file: tiny.csv, sha256: {digest}}}]"
    card.write_text(card.read_text().replace("file: tiny.csv", source))


def test_which_private_rows_trained_is_kept_beside_the_file(lab: Lab) -> None:
    model, task = fitted(lab)
    path = lab.folder / "m.json"
    assert save_fitted(model, "lab", task, path, all_rows=False) == lab.folder / "m.local-notes"
    origin = load_model(path).origin_
    assert (origin["rows"], origin["config"], origin["epsilon"]) == ("of one split", "lab", 4.0)
    assert not {"task", "seed", "split", "data_fingerprint"} & set(origin)
    assert trained_on(origin, path) == task.to_json()
    notes = local_notes_path(path)
    assert "Not for release" in json.loads(notes.read_text())["note"]
    assert stat.S_IMODE(notes.stat().st_mode) == 0o600


def test_of_public_rows_the_file_says_which_trained(lab: Lab) -> None:
    make_public(lab)
    model, task = fitted(lab)
    path = lab.folder / "m.json"
    assert save_fitted(model, "lab", task, path, all_rows=False) is None
    assert load_model(path).origin_ == {"config": "lab", "task": task.to_json()}
    assert trained_on(load_model(path).origin_, path) == task.to_json()
    assert not local_notes_path(path).exists()


def test_a_model_of_all_rows_says_only_what_was_decided_and_has_none_to_score_it(lab: Lab) -> None:
    model, task = fitted(lab)
    path = lab.folder / "m.json"
    assert save_fitted(model, "lab", task, path, all_rows=True) is None
    origin = load_model(path).origin_
    assert origin["rows"] == "all"
    assert not {"task", "seed", "split", "data_fingerprint"} & set(origin)
    with pytest.raises(DpreproError, match=r"all rows, so no test rows are left .* `--split 0`"):
        trained_on(origin, path)


def test_a_model_of_private_rows_without_privacy_is_not_for_release(lab: Lab) -> None:
    model, task = fitted(lab, "ebm")
    path = lab.folder / "m.json"
    save_fitted(model, "lab", task, path, all_rows=True)
    assert load_model(path).origin_["not_for_release"] == "fitted to private rows without privacy"
    assert path.stat().st_mode & 0o777 == 0o600
    out = {ending: lab.folder / f"out.{ending}" for ending in ("html", "py")}
    dprepro("show", path, "--output", out["html"])
    dprepro("export", path, "--to", "python", "--output", out["py"])
    assert {place.stat().st_mode & 0o777 for place in out.values()} == {0o600}
    model, task = fitted(lab)  # with a fixed seed
    save_fitted(model, "lab", task, path, all_rows=True)
    assert load_model(path).origin_["not_for_release"].endswith("its ledger does not hold")
    make_public(lab)
    model, task = fitted(lab, "ebm")
    path = lab.folder / "public.json"
    save_fitted(model, "lab", task, path, all_rows=True)
    assert "not_for_release" not in load_model(path).origin_
    made = lab.folder / "made"
    made.touch()
    assert path.stat().st_mode == made.stat().st_mode


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "cannot be read .*put the file there, or fit the model again"),
        ("not JSON", "is damaged or belongs to another model"),
        ([], "is damaged"),
        ({"format": "other", "task": {}}, "is damaged"),
        ({"format": "dprepro local notes", "task": {"dataset": "tiny"}}, "another model"),
    ],
)
def test_notes_that_are_missing_or_of_another_model_are_told(
    lab: Lab, change: Any, message: str
) -> None:
    model, task = fitted(lab)
    path = lab.folder / "m.json"
    notes = save_fitted(model, "lab", task, path, all_rows=False)
    assert notes is not None
    notes.unlink()
    if change is not None:
        notes.write_text(change if isinstance(change, str) else json.dumps(change))
    with pytest.raises(DpreproError, match=message):
        trained_on(load_model(path).origin_, path)


def test_an_origin_that_says_nothing_of_rows_names_no_task() -> None:
    assert trained_on({"note": "by hand"}, Path("m.json")) == {}


def test_a_place_that_cannot_be_written_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = fitted(lab)
    (lab.folder / "m.local-notes").mkdir()
    with pytest.raises(DpreproError, match=r"cannot write .*m.local-notes"):
        save_fitted(model, "lab", task, lab.folder / "m.json", all_rows=False)
