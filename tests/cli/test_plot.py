"""`dprepro plot`."""

import io
import json
import math
from pathlib import Path

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from dprepro.additive.record import FORMAT, PREDICTION
from dprepro.cli import app
from dprepro.cli.plot import say_written
from dprepro.cli.streams import Patience
from dprepro.runtime.errors import DpreproError
from tests.release.test_explaining import CONFIG
from tests.report.journals import records, spread, write


@pytest.fixture
def results(tmp_path):
    lines = [
        *records(spread(0.883, 0.005), epsilon=1.0),
        *records(spread(0.92, 0.003), label="ebm", epsilon=math.inf),
        *records(spread(0.83, 0.003), epsilon=1.0, dataset="telco"),
    ]
    write(tmp_path / "results", "one", lines)
    prices = records(spread(4321, 9), metric="rmse", epsilon=1.0, dataset="prices")
    write(tmp_path / "results", "two", prices)
    return tmp_path


def curves(folder, *arguments):
    options = ["--results", folder / "results", "--output", folder / "out", *arguments]
    outcome = CliRunner().invoke(app, ["plot", "curves", *map(str, options)])
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    written = sorted(path.name for path in (folder / "out").iterdir())
    assert sorted(line.rpartition("/")[2] for line in outcome.stdout.split()) == written
    return written


TABLE_2 = "curves-dp-ebm-2021-table-2"


def test_every_table_gets_a_picture_in_both_formats(results):
    names = [f"{TABLE_2}-auc", "curves-prices-rmse"]
    assert curves(results) == sorted(f"{n}.{e}" for n in names for e in ("png", "svg"))


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["--metric", "auc"], [f"{TABLE_2}-auc"]),
        (["--metric", "auc", "--each"], [f"{TABLE_2}-adult-auc", f"{TABLE_2}-telco-auc"]),
        (["--dataset", "adult"], [f"{TABLE_2}-adult-auc"]),
        (["--config", "two"], ["curves-prices-rmse"]),
        (["--paper", "dp-ebm-2021", "--dataset", "telco"], [f"{TABLE_2}-telco-auc"]),
        (["--method", "dp-ebm-gdp-2021", "--dataset", "adult"], [f"{TABLE_2}-adult-auc"]),
    ],
)
def test_what_is_drawn_can_be_chosen(results, arguments, written):
    assert curves(results, *arguments, "--format", "svg") == sorted(f"{n}.svg" for n in written)


def test_a_picture_has_the_size_the_letters_and_the_dots_that_are_asked_for(results):
    asked = ["--dataset", "adult", "--size", "3.3x2.4", "--font", "6", "--dpi", "100"]
    formats = [word for ending in ("pdf", "png", "svg") for word in ("--format", ending)]
    assert curves(results, *asked, *formats) == [
        f"{TABLE_2}-adult-auc.{ending}" for ending in ("pdf", "png", "svg")
    ]
    pdf, png, svg = (
        (results / "out" / f"{TABLE_2}-adult-auc.{e}").read_bytes() for e in ("pdf", "png", "svg")
    )
    assert b"/MediaBox [ 0 0 237.6 172.8 ]" in pdf
    assert imread(io.BytesIO(png)).shape[:2] == (240, 330)
    assert b'width="237.6pt" height="172.8pt"' in svg


@pytest.mark.parametrize("size", ["3.3", "3.3x", "axb", "0.2x3", "3x100", "3x-2", "nanx2"])
def test_a_size_is_two_numbers_of_inches(size):
    outcome = CliRunner().invoke(app, ["plot", "curves", f"--size={size}"])
    said = " ".join(outcome.output.replace("│", " ").split())
    assert outcome.exit_code == 2
    assert "each from 1 to 40: 3.3x2.4" in said


@pytest.mark.parametrize("option", ["--font=1", "--font=99", "--dpi=5", "--dpi=5000"])
def test_letters_and_dots_have_limits(option):
    assert CliRunner().invoke(app, ["plot", "curves", option]).exit_code == 2


def test_a_size_without_room_writes_nothing_and_says_what_would_do(results):
    with pytest.raises(DpreproError, match=r"about 3\.3x\S+ inches would do.*--size"):
        curves(results, "--dataset", "adult", "--size", "3.3x1")
    assert not list((results / "out").glob("*"))


@pytest.fixture
def many_methods(tmp_path):
    """Eleven methods on a dataset of one's own."""
    lines = [
        line
        for k in range(11)
        for epsilon in (1.0, 2.0)
        for line in records([0.5 + k / 100, 0.6], f"m{k}", epsilon, dataset="shop")
    ]
    write(tmp_path / "results", "one", lines)
    return tmp_path


def said_of(folder, *arguments):
    options = ["--results", folder / "results", "--output", folder / "out", "--format", "svg"]
    return CliRunner().invoke(app, ["plot", "curves", *map(str, options), *arguments])


def test_it_says_that_methods_are_grey_and_how_to_name_them(many_methods):
    assert "--highlight chooses those in colour" in said_of(many_methods).stderr
    for arguments in (["--name-grey"], ["--highlight", "m1,m2"], ["--method", "m1,m2"]):
        outcome = said_of(many_methods, *arguments)
        assert outcome.exit_code == 0, outcome.output
        assert "--highlight" not in outcome.stderr


def test_too_many_or_unknown_methods_to_colour_are_refused(many_methods):
    nine = ",".join(f"m{k}" for k in range(9))
    assert "names 9 methods" in str(said_of(many_methods, "--highlight", nine).exception)
    assert "did you mean 'm1'" in str(said_of(many_methods, "--highlight", "m111").exception)


def test_many_files_are_counted_and_few_are_named(tmp_path, capsys):
    few = [tmp_path / f"{k}.svg" for k in range(12)]
    say_written(few)
    assert capsys.readouterr().out.splitlines() == [str(path) for path in few]
    say_written([*few, tmp_path / "all.svg"])
    assert capsys.readouterr().out == f"{tmp_path}: 13 files, from 0.svg to all.svg\n"


def test_what_takes_long_says_what_is_done(results, monkeypatch):
    steps = []
    monkeypatch.setattr(Patience, "step", lambda self, text: steps.append(text))
    curves(results, "--format", "svg")
    assert steps == ["reading the journals", "drawing 3 panels"]


def test_choosing_methods_changes_the_picture(results):
    curves(results, "--dataset", "adult", "--format", "svg")
    path = results / "out" / f"{TABLE_2}-adult-auc.svg"
    whole = path.read_text(encoding="utf-8")
    curves(results, "--dataset", "adult", "--format", "svg", "--method", "dp-ebm-gdp-2021")
    assert len(path.read_text(encoding="utf-8")) < len(whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "acu"], "did you mean 'auc'"),
        (["--dataset", "adlut"], "did you mean 'adult'"),
        (["--method", "dp-ebm-gpd"], "did you mean 'dp-ebm-gdp-2021'"),
        (["--config", "tow"], "did you mean 'two'"),
    ],
)
def test_mistakes_say_what_is_allowed(results, arguments, message):
    with pytest.raises(DpreproError, match=message):
        curves(results, *arguments)


def test_unknown_formats_are_refused(results):
    outcome = CliRunner().invoke(app, ["plot", "curves", "--format", "gif"])
    assert outcome.exit_code == 2
    assert "gif" in outcome.output


def shapes(folder, *arguments):
    options = ["--model", folder / "wide.json", "--output", folder / "out", "--format", "svg"]
    return CliRunner().invoke(app, ["plot", "shapes", *map(str, options), *arguments])


@pytest.fixture
def wide_model(tmp_path):
    """A saved model of 22 features, of which the later ones matter more."""
    values = [[-float(k), float(k)] for k in range(22)]
    bins = {"kind": "categorical", "missing": False, "missing_bin": None, "noise": None}
    bins |= {"categories": ["a", "b"], "groups": [0, 1], "labels": ["a", "b"], "counts": [1.0, 1.0]}
    features = [{"name": f"f{k}", **bins, "values": v} for k, v in enumerate(values)]
    fixed = {"format": FORMAT, "version": 1, "prediction": PREDICTION, "range": None}
    rest = {"edits": [], "ledger": None, "origin": {}, "named_columns": True, "intercept": 0.0}
    file = {**fixed, **rest, "task": "binary", "classes": [0, 1], "features": features}
    (tmp_path / "wide.json").write_text(json.dumps(file))
    return tmp_path


def test_of_a_wide_model_the_most_important_features_are_drawn(wide_model):
    outcome = shapes(wide_model)
    assert outcome.exit_code == 0, outcome.output
    assert "20 of 22 features are drawn" in outcome.stderr
    assert "--feature NAME" in outcome.stderr
    written = {path.name for path in (wide_model / "out").iterdir()}
    assert written == {"shapes.svg", *(f"shapes-f{k}.svg" for k in range(2, 22))}


def test_a_feature_that_was_left_out_can_be_asked_for(wide_model):
    outcome = shapes(wide_model, "--feature", "f0")
    assert outcome.stderr == ""
    assert [path.name for path in (wide_model / "out").iterdir()] == ["shapes-f0.svg"]


def test_too_many_models_are_refused_before_any_is_read(tmp_path):
    outcome = shapes(tmp_path, *(13 * ["--model", str(tmp_path / "absent.json")]))
    assert "at most 8 fit" in str(outcome.exception)


def test_filters_writes_the_pictures_it_names(tmp_path: Path) -> None:
    config = tmp_path / "explained.yaml"
    config.write_text(CONFIG)
    arguments = [
        "plot", "filters", str(config), "--method", "llm", "--row", "3", "--name", "maps",
        "--output", str(tmp_path / "out"), "--format", "png",
    ]  # fmt: skip
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    path = tmp_path / "out" / "maps.png"
    assert result.output.split() == [str(path)]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_sweep_is_drawn_for_each_dataset(tmp_path: Path) -> None:
    lines = [
        record
        for maps in (1, 3)
        for record in records(
            [0.8, 0.9], label=f"llm n_maps={maps}", metric="accuracy", dataset="mnist",
            method="llm", params={"n_maps": maps},
        )
    ]  # fmt: skip
    write(tmp_path / "results", "one", lines)
    arguments = [
        "plot", "sweep", "n_maps", "--results", str(tmp_path / "results"),
        "--output", str(tmp_path / "out"), "--format", "svg",
    ]  # fmt: skip
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.split() == [str(tmp_path / "out" / "sweep-n_maps-mnist.svg")]
    assert (tmp_path / "out" / "sweep-n_maps-mnist.svg").is_file()
