from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dprepro.cli import app
from dprepro.cli.data import _COMMANDS, _asked_for, data
from dprepro.data.dataset import UnavailableError
from dprepro.runtime.errors import DpreproError

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["data", *args], env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data folder and an empty cache."""
    monkeypatch.setenv("DPREPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DPREPRO_DATA", raising=False)


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """The card of a table of one's own."""
    (tmp_path / "toy.csv").write_text("[age],c,y\n20,red,yes\n31,blue,no\n")
    path = tmp_path / "toy.yaml"
    path.write_text("name: toy\ntask: binary\nfile: toy.csv\ntarget: y\npositive: 'yes'\n")
    return path


@pytest.mark.parametrize("command", ["", "list", "fetch", "verify", "describe"])
def test_every_help_has_an_example(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Example: dprepro data {command}" in result.output


def test_list_shows_the_built_in_cards() -> None:
    output = run("list").output
    for part in ("adult", "32,561", "breast-cancer", "credit", "telco", "Telco customer churn"):
        assert part in output
    assert run().output == output


def test_words_select_datasets_and_a_mistyped_command_is_noticed() -> None:
    names = [line.split()[0] for line in run("list", "wine").output.splitlines()[1:]]
    assert names == ["wine", "wine-5297", "wine-distinct", "wine-white"]
    assert run("WINE", "white").output.splitlines()[1].split()[0] == "wine"
    assert {c.name or c.callback.__name__ for c in data.registered_commands} == set(_COMMANDS)
    error = run("desribe", "adult").exception
    assert isinstance(error, DpreproError)
    assert "Or did you mean `dprepro data describe`?" in str(error)


def test_fetch_says_what_it_has(card: Path) -> None:
    result = run("fetch", str(card))
    assert result.exit_code == 0
    assert f"ok {card}" in result.output
    assert "2 rows, 2 columns, compared with no checksum, from" in result.output
    assert str(card.with_name("toy.csv")) in result.output


def test_fetch_takes_the_data_folder(card: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    card.with_name("toy.csv").rename(folder / "toy.csv")
    missed = run("fetch", str(card))
    assert missed.exit_code == 1
    assert "Put the file there by hand" in missed.output
    assert run("fetch", str(card), "--data-dir", str(folder)).exit_code == 0


CONFIG = """
dataset: {dataset}
metric: auc
domain: observed
seed: 1
epsilons: [1]
delta: 1e-6
methods: [ebm]
"""


def test_fetch_gets_what_a_config_and_its_includes_name(card: Path, tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text(CONFIG.format(dataset="toy.yaml"))
    (tmp_path / "outer.yaml").write_text(
        CONFIG.format(dataset="breast-cancer") + "include: [inner.yaml]\n"
    )
    result = run("fetch", str(tmp_path / "outer.yaml"), str(card))
    assert result.exit_code == 0, result.exception
    lines = result.stdout.splitlines()
    states = re.findall(r"^ +ok ([^ ]+): ", result.stdout, re.MULTILINE)
    assert states == [str(tmp_path / "toy.yaml"), "breast-cancer"]
    assert lines[-1] == "2 of 2 datasets are here and verified"


def test_fetch_goes_on_where_one_dataset_cannot_be_had(
    card: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy.csv").unlink()
    (tmp_path / "mine.yaml").write_text(CONFIG.format(dataset="toy.yaml"))
    result = run("fetch", str(tmp_path / "mine.yaml"), "breast-cancer")
    assert result.exit_code == 1
    output = " ".join(result.output.split())
    assert f"absent {tmp_path / 'toy.yaml'}: dataset 'toy': none of its sources has it" in output
    assert f"Put the file there by hand: {tmp_path / 'toy.csv'}" in output
    assert "ok breast-cancer" in output
    assert result.output.splitlines()[-1] == "1 of 2 datasets are here and verified"


def test_fetch_needs_published_test_rows_where_a_config_has_them_tested(
    card: Path, tmp_path: Path
) -> None:
    card.write_text(card.read_text(encoding="utf-8") + "test: {sources: [{file: test.csv}]}\n")
    config = tmp_path / "mine.yaml"
    config.write_text(CONFIG.format(dataset="toy.yaml"))
    assert run("fetch", str(config)).exit_code == 0
    config.write_text(config.read_text(encoding="utf-8") + "evaluation: test-set\n")
    assert run("fetch", str(config)).exit_code == 1
    assert run("fetch", str(card)).exit_code == 1


def test_a_name_of_a_dataset_and_a_config_means_the_dataset(tmp_path: Path) -> None:
    assert _asked_for(["adult", "table3"]) == {
        "adult": True,
        **dict.fromkeys(["cal-housing", "elevators", "pol", "wine-white"], False),
    }
    with pytest.raises(DpreproError, match="'adullt' is no dataset, no config and no file; did"):
        _asked_for(["adullt"])


def test_what_was_compared_is_said(card: Path) -> None:
    assert "verified by values_sha256, from scikit-learn" in run("verify", "breast-cancer").output
    assert re.search(r"verified by +values_sha256", run("describe", "breast-cancer").output)
    assert "compared with no checksum" in run("verify", str(card)).output


def test_verify_all_shows_what_is_absent_and_succeeds() -> None:
    result = run("verify")
    assert result.exit_code == 0
    assert "ok breast-cancer: 569 rows" in result.output
    assert "absent adult" in result.output
    assert "Or: dprepro data fetch adult" in result.output


def test_verify_fails_for_the_one_named_if_absent_or_wrong(card: Path) -> None:
    assert run("verify", "adult").exit_code == 1
    assert run("verify", str(card)).exit_code == 0
    card.write_text(card.read_text(encoding="utf-8") + "expect: {rows: 3}\n")
    result = run("verify", str(card))
    assert result.exit_code == 1
    assert "rows: expected 3, found another" in result.output


def test_describe_shows_size_and_what_is_public() -> None:
    output = run("describe", "breast-cancer").output
    for part in ("569", "212 (37.3%)", "scikit-learn", "mean radius", "[0, 50]", "0.00%", "CC BY"):
        assert part in output


def test_describe_a_table_without_rows(card: Path) -> None:
    (card.parent / "toy.csv").write_text("age,c,y\n")
    features = "features: {age: {numeric: [0, 99]}, c: {categories: [red, blue]}}"
    card.write_text(f"{card.read_text()}labels: ['yes', 'no']\n{features}\n")
    result = run("describe", str(card))
    assert result.exit_code == 0, result.exception
    assert re.search(r"positives +0 \(0\.0%\)", result.output)


def test_describe_a_table_of_ones_own(card: Path) -> None:
    output = run("describe", str(card)).output
    for part in ("[age]", "nothing", "none: run it with `domain: observed`"):
        assert part in output


def test_describe_says_whether_rows_are_private_and_shows_no_digest_of_them(card: Path) -> None:
    output = " ".join(run("describe", str(card)).output.split())
    assert "private yes: the card has no checksum" in output
    described = json.loads(run("describe", str(card), "--json").output)
    assert (described["private"], described["sha256"], described["values_sha256"]) == (True, "", "")
    assert described["fingerprint"].startswith("private-")
    assert not json.loads(run("describe", "breast-cancer", "--json").output)["private"]


def test_whoever_counts_private_rows_is_told(card: Path) -> None:
    for command in ("verify", "fetch"):
        said = run(command, str(card))
        assert "2 rows" in said.stdout
        assert said.stderr.startswith("PRIVATE DATA: the number of rows is exact")
        assert "PRIVATE" not in run(command, "breast-cancer").stderr


def test_describe_as_json(card: Path) -> None:
    described = json.loads(run("describe", str(card), "--json").output)
    assert described["rows"] == 2
    assert [column["name"] for column in described["columns"]] == ["[age]", "c"]


def test_an_unknown_name_is_an_error_of_the_users() -> None:
    result = run("describe", "adlut")
    assert isinstance(result.exception, DpreproError)
    assert "did you mean 'adult'?" in str(result.exception)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The card that docs/own-data.md prints, beside a table of its own."""
    text = PAGE.read_text(encoding="utf-8").split("```yaml\n# shop.yaml\n")[1].split("```")[0]
    path = tmp_path / "shop.yaml"
    path.write_text(text)
    (tmp_path / "shop.csv").write_text("age,city,returned\n20,Bonn,yes\n31,Turin,no\n")
    return path


def test_describe_shows_the_public_domain_of_the_card_in_the_readme(shop: Path) -> None:
    output = " ".join(run("describe", str(shop)).output.split())
    assert "none: run it" not in output
    for part in ("public domain what the card says", "[18, 100]", "Bonn, Lyon, Turin"):
        assert part in output
    assert "labels not yes, yes" in output
    described = json.loads(run("describe", str(shop), "--json").output)
    assert described["has_public_domain"]
    assert described["labels"] == ["not yes", "yes"]


def test_describe_says_that_the_card_allows_no_missing_values(shop: Path) -> None:
    shop.with_name("shop.csv").write_text("age,city,returned\n,Bonn,yes\n31,Turin,no\n")
    assert "does not allow" not in run("describe", str(shop)).output
    shop.write_text(shop.read_text(encoding="utf-8").replace(", missing: true", ""))
    output = " ".join(run("describe", str(shop)).output.split())
    assert (
        "values are missing in age, and the card does not allow it: add `missing: true`" in output
    )
    assert json.loads(run("describe", str(shop), "--json").output)["undeclared"] == ["age"]


def test_describe_shows_the_labels_and_the_note_that_a_card_gives(shop: Path) -> None:
    shop.write_text(
        shop.read_text(encoding="utf-8") + 'labels: ["no", "yes"]\ndomain_note: by law\n'
    )
    output = " ".join(run("describe", str(shop)).output.split())
    assert "labels no, yes" in output
    assert "public domain by law" in output


def test_describe_shows_the_bounds_of_a_target(shop: Path) -> None:
    text = shop.read_text(encoding="utf-8").replace(
        "target: returned", "target: age\ntarget_bounds: [0, 120]"
    )
    text = text.replace("task: binary", "task: regression").replace('positive: "yes"\n', "")
    text = re.sub(r"age: \{.*\}", 'returned: {categories: ["no", "yes"]}', text)
    shop.write_text(text)
    output = " ".join(run("describe", str(shop)).output.split())
    assert "target bounds [0, 120] (outside: 0.00% of the rows)" in output
    assert "public domain what the card says" in output
    shop.write_text(text.replace("[0, 120]", "[25, 50]"))
    output = " ".join(run("describe", str(shop)).output.split())
    assert "target bounds [25, 50] (outside: 50.00% of the rows)" in output


def test_a_note_makes_no_public_domain(card: Path) -> None:
    card.write_text(card.read_text(encoding="utf-8") + "domain_note: nobody knows\n")
    output = " ".join(run("describe", str(card)).output.split())
    assert "public domain none: run it with `domain: observed`. nobody knows" in output


def test_describe_of_a_table_that_is_not_here_says_where_to_put_it(shop: Path) -> None:
    shop.with_name("shop.csv").unlink()
    error = run("describe", str(shop)).exception
    assert isinstance(error, UnavailableError)
    assert f"Put the file there by hand: {shop.with_name('shop.csv')}" in str(error)


def test_a_card_whose_file_is_missing_is_not_complete(tmp_path):
    """`file: vists.csv` was complete, and a release said to try again later."""
    card = tmp_path / "shop.yaml"
    lines = "name: shop\ntask: binary\nfile: vists.csv\ntarget: y\npositive: b\n"
    card.write_text(f"{lines}features:\n  x: {{numeric: [0, 1]}}\n")
    for command in ("check", "verify"):
        result = CliRunner().invoke(app, ["data", command, str(card)])
        said = f"{result.output}{result.exception}"
        assert result.exit_code == 1
        assert str(tmp_path / "vists.csv") in said.replace("\n", "")
        assert "Try again later" not in said
        assert "complete:" not in said
