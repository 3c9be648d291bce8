"""`dprepro ledger`."""

import json

import pytest
from typer.testing import CliRunner

from dprepro.additive.file import save_model
from dprepro.cli import app, main
from dprepro.experiment.config import load_config
from dprepro.methods.logistic.curator import FLOATING_POINT
from dprepro.runtime.errors import DpreproError
from tests.report.model_page.models import model

METHODS = {entry.method for entry in load_config("quickstart").methods}


def run(*arguments):
    result = CliRunner().invoke(app, ["ledger", *arguments], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    return result.output


def test_the_overview_shows_what_is_really_spent_under_both_relations():
    output = run("adult", "--method", "dp-ebm-classic", "--method", "dp-logistic")
    (stated,) = [line for line in output.splitlines() if line.startswith("dp-ebm-classic ")]
    assert stated.split() == ["dp-ebm-classic", "zero-out", "0.1622", "0.3313", "0.6783", "1.397",
                              "2.916"]  # fmt: skip
    assert (
        "dp-logistic: the stated guarantee does not hold: 5 reads not covered by epsilon, 1 gap"
        in output
    )


def test_the_overview_is_of_every_private_method_of_the_config():
    starts = [line.split(" ")[0] for line in run("quickstart").splitlines()]
    assert [start for start in starts if start in METHODS] == ["dp-ebm-gdp", "dp-logistic-fair"]


def test_one_method_at_one_epsilon_is_shown_in_full():
    output = run("adult", "--method", "dp-ebm-gdp", "--epsilon", "1")
    assert "number of rows in each" in output
    assert "4,200" in output
    assert "by dp_accounting: 0.876 of the stated 1; under replace-one 1.848" in output
    assert "bounds of age" in output


def test_what_is_in_floating_point_is_named():
    output = " ".join(run("adult", "--method", "dp-logistic-fair", "--epsilon", "1").split())
    heading = "Floating point, where real arithmetic is taken as given: "
    assert f"{heading}coefficients: the noise is part of what an optimiser" in output
    assert f"{heading}none" in " ".join(
        run("adult", "--method", "dp-ebm-gdp", "--epsilon", "1").split()
    )
    (found,) = json.loads(run("adult", "--method", "dp-logistic", "--epsilon", "1", "--json"))
    assert found["floating_point"] == [FLOATING_POINT]


@pytest.mark.parametrize("method", ["dp-ebm-gdp", "dpboost-sound"])
def test_what_the_samplers_add_to_delta_is_shown_where_noise_is_exact(method):
    output = " ".join(run("adult", "--method", method, "--epsilon", "1").split())
    assert (
        "Samplers: exact up to a distance of 2^-400 in total variation, which adds at most 2e-120 "
        "to delta"
    ) in output


@pytest.mark.parametrize(
    ("config", "method", "epsilon"),
    [("mnist", "dp-llm", "2"), ("adult", "dp-logistic-fair", "1"), ("adult", "dp-logistic", "1")],
)
def test_samplers_are_not_named_where_a_library_or_floating_point_draws(config, method, epsilon):
    assert "Samplers" not in run(config, "--method", method, "--epsilon", epsilon)


def test_json_holds_every_entry():
    (found,) = json.loads(run("adult", "--method", "dp-ebm-gdp", "--epsilon", "1", "--json"))
    assert [entry["uses"] for entry in found["entries"]] == [14, 4200]
    assert found["true_epsilon"] < found["epsilon"] < found["replace_one_epsilon"]


def test_samples_and_the_moments_accountant_are_shown():
    output = run("mnist", "--method", "dp-llm", "--epsilon", "2")
    row = next(line for line in output.splitlines() if "gaussian" in line)
    assert "sampled with" in output
    assert row.split()[-5:] == ["0.65", "2,400", "0.008333", "(2,", "1e-05)"]
    assert "by dp_accounting: 1.474 of the stated 2; under replace-one 2.65" in output
    assert "Spent epsilon, by the moments accountant: 1.93" in output
    found, *_ = json.loads(run("mnist", "--method", "dp-llm", "--epsilon", "2", "--json"))
    assert found["entries"][0]["sampling"] == pytest.approx(500 / 60_000)
    assert found["moments_epsilon"] == pytest.approx(1.93, abs=0.005)


def refused(config, folder, monkeypatch, capsys):
    """Return the message of a command that ends with exit code 2."""
    monkeypatch.setattr("sys.argv", ["dprepro", "ledger", config, "--data-dir", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert "Traceback" not in message
    return message


def test_rows_that_nobody_offers_are_said_to_be_missing(tmp_path, monkeypatch, capsys):
    place = tmp_path / "henan" / "henan.csv"
    message = refused("henan", tmp_path, monkeypatch, capsys)
    assert "Henan Renmin Hospital records (not public any more)" in message
    assert f"there is no file at {place}" in message
    assert "put the file there and run `dprepro run henan`" in message
    place.parent.mkdir()
    place.write_text("disease\n")  # whoever has it: no row of it is read
    message = refused("henan", tmp_path, monkeypatch, capsys)
    assert "no file at" not in message
    assert "card, or run `dprepro run henan`: the journal holds the ledgers" in message


def test_rows_with_a_stand_in_are_not_said_to_be_missing(tmp_path, monkeypatch, capsys):
    message = refused("healthcare", tmp_path, monkeypatch, capsys)
    assert "no file at" not in message
    assert "card, or run `dprepro run healthcare`" in message


def test_help_has_an_example():
    assert "Example: dprepro ledger adult" in run("--help")


def test_a_model_file_and_a_release_folder_show_their_own_ledger(tmp_path):
    """A reader who held a model was told to ask `ledger`, which took configs alone."""
    file = tmp_path / "model.json"
    save_model(model(), file)
    output = " ".join(run(str(file)).split())
    assert "as stated in the file" in output
    assert "random rows" not in output
    assert "by dp_accounting: 0.5 of the stated 1" in output
    assert run(str(tmp_path)).split() == run(str(file)).split()
    values = json.loads(run(str(file), "--json"))
    assert (values["model"], values["true_epsilon"]) == (str(file), 0.5)
    with pytest.raises(DpreproError, match="leave out --method and --epsilon"):
        fail("ledger", file, "--epsilon", "1")
    save_model(model(ledger=None), file)
    with pytest.raises(DpreproError, match="has no ledger"):
        fail("ledger", file)


def test_a_ledger_of_random_rows_says_so_first():
    """Its scale was not that of the fit, and only --help said why."""
    arguments = ("quickstart", "--method", "dp-ebm-gdp", "--epsilon", "1")
    first = " ".join(run(*arguments).split())
    assert first.startswith("Ledgers of fits to 400 random rows of the public domain. ")
    (found,) = json.loads(run(*arguments, "--json"))
    assert found["fitted_to"] == "400 random rows of the public domain"


@pytest.mark.parametrize(
    ("command", "kind", "said"),
    [
        ("ledger", "card.yaml", "this is a card, not a config. `dprepro new config CARD`"),
        ("run", "card.yaml", "this is a card, not a config"),
        ("run", "model.json", "this is a model file, not a config. `dprepro ledger MODEL`"),
        ("data check", "config.yaml", "this is a config, not a card. `dprepro run CONFIG`"),
        ("data check", "model.json", "this is a model file, not a card"),
        ("show", "card.yaml", "not JSON as a model file needs it: .*`dprepro release CARD`"),
        ("verify", "model.json", "name the folder that `dprepro release` wrote"),
    ],
)
def test_a_file_of_another_kind_is_named_in_one_line(tmp_path, command, kind, said):
    """A card or a model given as a config got nineteen lines on its keys."""
    save_model(model(), tmp_path / "model.json")
    card = "name: a\ntask: binary\nfile: a.csv\ntarget: y\npositive: b\n"
    (tmp_path / "card.yaml").write_text(card)
    (tmp_path / "config.yaml").write_text("dataset: card.yaml\nepsilons: [1]\nmethods: [ebm]\n")
    with pytest.raises(DpreproError, match=said) as caught:
        fail(*command.split(), tmp_path / kind)
    assert "\n" not in str(caught.value)


def fail(*arguments):
    raise CliRunner().invoke(app, list(map(str, arguments))).exception
