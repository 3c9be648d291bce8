import math

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.errors import DpreproError
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
    assert sorted(line.rpartition("/")[2] for line in outcome.output.split()) == written
    return written


def test_every_dataset_gets_a_picture_in_both_formats(results):
    names = ["curves", "curves-auc-adult", "curves-auc-telco", "curves-rmse-prices"]
    assert curves(results) == sorted(f"{n}.{e}" for n in names for e in ("png", "svg"))


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["--metric", "auc"], ["curves-auc-adult", "curves-auc-telco", "curves-auc"]),
        (["--dataset", "adult"], ["curves-auc-adult"]),
        (["--config", "two"], ["curves-rmse-prices"]),
        (["--paper", "dp-ebm-2021", "--dataset", "telco"], ["curves-auc-telco"]),
        (["--method", "dp-ebm-gdp", "--dataset", "adult"], ["curves-auc-adult"]),
    ],
)
def test_what_is_drawn_can_be_chosen(results, arguments, written):
    assert curves(results, *arguments, "--format", "svg") == sorted(f"{n}.svg" for n in written)


def test_choosing_methods_changes_the_picture(results):
    curves(results, "--dataset", "adult", "--format", "svg")
    path = results / "out" / "curves-auc-adult.svg"
    whole = path.read_text()
    curves(results, "--dataset", "adult", "--format", "svg", "--method", "dp-ebm-gdp")
    assert len(path.read_text()) < len(whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "acu"], "did you mean 'auc'"),
        (["--dataset", "adlut"], "did you mean 'adult'"),
        (["--method", "dp-ebm-gpd"], "did you mean 'dp-ebm-gdp'"),
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
