"""YAML files: values, lines and models, and what is said of those that are wrong."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.yaml_files import read_model, read_yaml


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


def _write(folder: Path, text: str) -> Path:
    path = folder / "some.yaml"
    path.write_text(text)
    return path


def test_where_names_file_line_and_dotted_key(tmp_path: Path) -> None:
    path = _write(tmp_path, "a: 1\nb:\n  - x\n  - {c: 2,\n     d: 3}\n")
    source = read_yaml(path)
    assert source.where("a") == f"{path}, line 1, a"
    assert source.where("b", 1) == f"{path}, line 4, b[1]"
    assert source.where("b", 1, "d") == f"{path}, line 5, b[1].d"


def test_where_falls_back_to_the_nearest_known_parent(tmp_path: Path) -> None:
    path = _write(tmp_path, "a: 1\nb: {c: 2}\n")
    source = read_yaml(path)
    assert source.where("b", "missing", 0) == f"{path}, line 2, b.missing[0]"
    assert source.where("missing") == f"{path}, missing"
    assert source.where() == str(path)


@pytest.mark.parametrize("text", ["1e-6", "1.0e-6", "1E-6", "0.000001", "+1e-6"])
def test_numbers_in_every_notation_are_numbers(tmp_path: Path, text: str) -> None:
    assert read_yaml(_write(tmp_path, f"delta: {text}")).values == {"delta": 1e-6}


def test_integers_and_words_keep_their_type(tmp_path: Path) -> None:
    values = read_yaml(_write(tmp_path, "[25, 1e, e5, '1e5', null]")).values
    assert values == [25, "1e", "e5", "1e5", None]


def test_a_key_given_twice_is_an_error_naming_both_lines(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"line 3: 'a' is given twice \(first on line 1\)"):
        read_yaml(_write(tmp_path, "a: 1\nb: 2\na: 3\n"))


def test_broken_yaml_names_line_and_reason(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"some\.yaml, line 2: not valid YAML"):
        read_yaml(_write(tmp_path, "a: 1\nb: ]\n"))


def test_what_is_never_closed_names_a_line_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"some\.yaml, line 2: not valid YAML"):
        read_yaml(_write(tmp_path, "a: 1\nb: [1,\n\n"))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
@pytest.mark.parametrize("depth", [51, 500, 100_000])
def test_what_is_nested_too_deeply_is_refused(tmp_path: Path, opening: str, depth: int) -> None:
    with pytest.raises(DpreproError, match=r"some\.yaml, line 1: not valid YAML"):
        read_yaml(_write(tmp_path, opening * depth + "1"))


def test_fifty_levels_are_read(tmp_path: Path) -> None:
    values = read_yaml(_write(tmp_path, "[" * 50 + "1" + "]" * 50)).values
    for _ in range(50):
        (values,) = values
    assert values == 1


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"nowhere\.yaml: cannot be read"):
        read_yaml(tmp_path / "nowhere.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: \xe9")
    with pytest.raises(DpreproError, match="cannot be read"):
        read_yaml(path)


def test_an_empty_file_has_no_values(tmp_path: Path) -> None:
    assert read_yaml(_write(tmp_path, "# nothing\n")).values is None


def test_places_to_fill_in_are_listed_once_a_line_with_their_comment(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    path.write_text(
        "name: a\ntask: FILL_IN  # which one\nfeatures:\n  x: {numeric: [FILL_IN, FILL_IN]}\n"
        "  y:\n    - FILL_IN # all of them\nnote: FILL_IN later\n"
    )
    assert read_yaml(path, text_only=True).unfilled == [
        "line 2, task: which one",
        "line 4, features.x.numeric",
        "line 6, features.y: all of them",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0o10", 8), ("0x1F", 31), ("+5", 5), ("-0", 0), ("0", 0), (".5", 0.5), ("5.", 5.0),
        ("-1.5E3", -1500.0), (".inf", math.inf), ("-.INF", -math.inf), ("true", True),
        ("FALSE", False), ("~", None), ("5e-324", 5e-324), ("0e-999", 0.0),
        # Numbers, dates and truth values of YAML 1.1 alone are texts.
        ("1:30", "1:30"), ("0b11", "0b11"), ("1_000", "1_000"), ("yes", "yes"), ("off", "off"),
        ("2024-02-30", "2024-02-30"), ("=", "="), ("0x_", "0x_"), ("'010'", "010"),
    ],
)  # fmt: skip
def test_plain_values_are_those_of_yaml_1_2(tmp_path: Path, text: str, value: object) -> None:
    (found,) = read_yaml(_write(tmp_path, f"- {text}")).values
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("010", "010 is read as an octal number by YAML 1.1"),
        ("-007", "-007 is read as an octal"),
        ("1e-400", "1e-400 is too close to 0 for a number"),
        ("-1e400", "-1e400 is too large for a number"),
        ("9" * 101, "more than 100 digits"),
        ("9" * 5000, "more than 100 digits"),
        ("!!int a", "'a' is not a whole number"),
        ("!!float a", "'a' is not a number"),
        ("!!bool maybe", "a value does not fit the tag"),
        ("!!timestamp 2024-02-30", "a value does not fit the tag"),
        ("!!timestamp maybe", "a value does not fit the tag"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a\0b", "holds '.x00', a control character"),
        ("&a [*a]", r"\*a is a part of itself"),
        ("&a {b: [*a]}", r"\*a is a part of itself"),
        ("&a {<<: *a}", r"\*a is a part of itself"),
        ("[" + "1," * 100_001 + "]", "more than 50,000 lists"),
        ("{1: a, 1.0: b}", "'1.0' is given twice"),
        ("{0.5: a, 0.50: b}", "'0.50' is given twice"),
    ],
)
def test_what_no_file_needs_is_refused_with_its_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(DpreproError, match=rf"some\.yaml(, line 2)?: .*{problem}") as caught:
        read_yaml(_write(tmp_path, f"#\n- {text}"))
    assert "\n" not in str(caught.value)


def test_aliases_count_as_what_they_repeat(tmp_path: Path) -> None:
    names = "abcdefghi"
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in pairwise(names)
    )
    with pytest.raises(DpreproError, match="line 5: not valid YAML: more than 50,000 lists"):
        read_yaml(_write(tmp_path, bomb))
    deep = "".join(f"- &{k} {'[' * 20}{f'*{k - 1}' if k else 'x'}{']' * 20}\n" for k in range(3))
    with pytest.raises(DpreproError, match=r"line 3: .* deeper than 50 levels"):
        read_yaml(_write(tmp_path, deep.replace("&", "&n").replace("*", "*n")))
    again = read_yaml(_write(tmp_path, "- &a [1]\n- [*a, *a]\n- &b x\n- *b\n")).values
    assert again == [[1], [[1], [1]], "x", "x"]
