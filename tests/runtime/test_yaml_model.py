from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.yaml_files import read_model


class Leg(BaseModel):
    model_config = ConfigDict(extra="forbid")
    length: float = 1.0
    shoe: str | None = None


class Animal(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    legs: list[Leg] = []
    by_side: dict[str, Leg] = {}


def read(tmp_path: Path, text: str) -> Animal:
    path = tmp_path / "animal.yaml"
    path.write_text(text, encoding="utf-8")
    return read_model(path, Animal)


def problem(tmp_path: Path, text: str) -> str:
    with pytest.raises(DpreproError) as caught:
        read(tmp_path, text)
    return str(caught.value)


@pytest.mark.parametrize("text", ["No", "1234e567", "2024-01-01", "007", "on"])
def test_text_stays_text_where_yaml_would_convert_it(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, f"name: {text}").name == text


def test_the_model_converts_numbers_and_null(tmp_path: Path) -> None:
    leg = read(tmp_path, "name: a\nlegs: [{length: 2.5, shoe: null}]").legs[0]
    assert leg == Leg(length=2.5, shoe=None)


def test_unknown_key_names_file_line_key_nearest_and_allowed(tmp_path: Path) -> None:
    message = problem(tmp_path, "name: a\nlegs:\n  - lenght: 2\n")
    for part in ("animal.yaml", "line 3", "legs[0].lenght", "did you mean 'length'?", "shoe"):
        assert part in message


def test_unknown_key_inside_a_mapping_of_models(tmp_path: Path) -> None:
    assert "did you mean 'shoe'?" in problem(tmp_path, "name: a\nby_side: {left: {shoo: x}}")


def test_every_problem_is_listed(tmp_path: Path) -> None:
    message = problem(tmp_path, "legs: [{length: long}]\ncolour: red")
    assert message.count("animal.yaml") == 3
    assert "name: missing" in message
    assert "given 'long'" in message
    assert "colour: unknown key" in message


def test_python_types_are_told_in_the_words_of_yaml(tmp_path: Path) -> None:
    message = problem(tmp_path, "name: a\nlegs: four\nby_side: [1]")
    assert "line 2, legs: a list is needed; given 'four'" in message
    assert "line 3, by_side: a mapping of keys to values is needed; given ['1']" in message


@pytest.mark.parametrize("text", ["", "- a\n- b", "just text"])
def test_what_is_no_mapping_is_refused_with_the_keys(tmp_path: Path, text: str) -> None:
    assert "must be a mapping" in problem(tmp_path, text)


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    assert "line 2" in problem(tmp_path, "name: a\nlegs: [1, 2")


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    assert "given twice" in problem(tmp_path, "name: a\nname: b")


def test_a_place_to_fill_in_is_refused_before_anything_else(tmp_path: Path) -> None:
    said = problem(tmp_path, "legs: [{length: FILL_IN}]  # in metres\nunknown: 1\n")
    assert "animal.yaml: still to be filled in, in the place of FILL_IN:" in said
    assert said.endswith("line 1, legs.length: in metres")
    assert read(tmp_path, "name: FILL_IN later").name == "FILL_IN later"
