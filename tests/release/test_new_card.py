from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dprepro.data.card import load_card
from dprepro.data.dataset import load
from dprepro.release.codebook import Codebook, Entry, missing_codes, read_codebook
from dprepro.release.columns import KNOWN_LISTS, Columns, Form, read_columns
from dprepro.release.new_card import Choices, NewCard, card_name, check_format, new_card, scalar
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.yaml_files import read_yaml
from tests.release.survey import CODEBOOK, write_survey

ROWS = "age;ward;back;id\n41.5;a;yes;1001\n77.25;b;no;1002\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "my rows.csv"
    path.write_text(ROWS)
    return path


def card_of(data: Path, codebook: dict[str, Entry], choices: Choices | None = None) -> Path:
    card = data.with_name("card.yaml")
    found = new_card(data, read_columns(data), card, Codebook(codebook), choices)
    card.write_text(found.text)
    return card


def of_text(folder: Path, text: str, choices: Choices | None = None, **reading: bool) -> NewCard:
    """Return the card of a table with these lines."""
    path = folder / "rows.csv"
    path.write_text(text)
    return new_card(path, read_columns(path, **reading), folder / "card.yaml", None, choices)


def line_of(text: str, begins: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(begins))


def test_nothing_of_the_rows_is_in_a_new_card(data: Path) -> None:
    text = card_of(data, {}).read_text(encoding="utf-8")
    for value in ("41.5", "77.25", "1001", "1002", "[a"):
        assert value not in text
    data.write_text(ROWS.replace("41.5", "12.5").replace("a;", "zz;"))
    assert card_of(data, {}).read_text(encoding="utf-8") == text


def test_a_card_is_refused_until_every_place_is_filled_in(data: Path) -> None:
    with pytest.raises(DpreproError) as caught:
        load_card(card_of(data, {}))
    said = str(caught.value)
    for place in ("task", "target", "domain_note", *(f"features.{n}" for n in ["age", "ward"])):
        assert f", {place}" in said
    assert "lowest and highest possible value" in said


def test_a_codebook_fills_in_all_of_it(data: Path) -> None:
    codebook = {
        "age": Entry(
            "numeric", 0, 120, missing=True, measured_in="years", description="At # entry"
        ),
        "ward": Entry("categorical", categories=("a", "no", "3")),
        "back": Entry("target", categories=("no", "yes")),
        "id": Entry("drop"),
    }
    card = load_card(card_of(data, codebook))
    assert (card.task, card.target, card.positive) == ("binary", "back", "yes")
    assert card.public_target == ("no", "yes")
    assert (card.features or {})["age"].numeric == (0, 120)
    assert (card.features or {})["age"].missing
    assert card.measured_in == {"age": "years"}
    assert (card.features or {})["ward"].categories == ["a", "no", "3"]
    assert card.drop == ["id"]
    assert not card.is_public
    assert card.format.separator == ";"


def test_several_texts_can_be_one_class(data: Path) -> None:
    data.write_text(ROWS.replace("no", "<30"))
    target = Entry("target", categories=("late", "<30"), relabel={"yes": "late"})
    drop = {name: Entry("drop") for name in ("ward", "id")}
    path = card_of(data, {"back": target, "age": Entry("numeric", 0, 120), **drop})
    assert load_card(path).labels == ["late", "<30"]
    assert list(load(path).y) == [0, 1]


def test_numbers_can_be_the_target(data: Path) -> None:
    codebook = {"age": Entry("target", 0, 120), "ward": Entry("drop"), "back": Entry("drop"),
                "id": Entry("numeric", 0, 9999)}  # fmt: skip
    card = load_card(card_of(data, codebook))
    assert (card.task, card.target_bounds) == ("regression", (0, 120))


def test_a_unit_needs_the_number_of_its_rows() -> None:
    columns = Columns({"patient": Form("numeric"), "x": Form("numeric")})

    def text(entry: Entry) -> str:
        return new_card(
            Path("rows.csv"), columns, Path("card.yaml"), Codebook({"patient": entry})
        ).text

    assert "unit: patient\nrows_per_unit: FILL_IN" in text(Entry("unit"))
    assert "rows_per_unit: 3\n" in text(Entry("unit", upper=3))


def test_texts_are_quoted_where_yaml_reads_something_else() -> None:
    assert [scalar(t) for t in ("age", "no", "3", "a: b", "")] == [
        "age", '"no"', '"3"', '"a: b"', '""',
    ]  # fmt: skip
    assert card_name(Path("my rows (2).csv")) == "my-rows-2"
    assert card_name(Path("rows.v2.csv.gz")) == "rows.v2"


def test_a_new_card_says_how_a_column_is_left_out(data: Path) -> None:
    text = card_of(data, {}).read_text(encoding="utf-8")
    assert "# drop: [COLUMN]               # columns that are not used" in text
    assert "the unit is no feature" in text
    dropped = card_of(data, {"id": Entry("drop")}).read_text(encoding="utf-8")
    assert "drop: [id]" in dropped
    assert "[COLUMN]" not in dropped


def test_proposals_say_that_they_are_some_and_the_head_what_was_read(tmp_path: Path) -> None:
    rows = [
        f"{k};{k + 0.5};{k % 2};{('yes', 'no')[k % 2]};{('no', 'yes')[k % 2]};{k % 9 + 10}.03.2014;"
        f"{(-99, k)[k % 3 > 0]};{chr(65 + k % 20)}"
        for k in range(40)
    ]
    text = "\n".join(["row;size;flag;a;b;day;code;ward", *rows]) + "\n"
    found = of_text(tmp_path, text)
    assert line_of(found.text, "drop: [row]").endswith("# proposed: row: a running number; check")
    assert '  no-yes: ["no", "yes"]\n' in found.text
    assert (
        "  a: {categories: no-yes}  # proposed: the column looks like no/yes; check" in found.text
    )
    assert '  flag: {categories: ["0", "1"]}  # proposed: the column looks like 0/1' in found.text
    assert '  day: {numeric: [FILL_IN, FILL_IN], date: "%d.%m.%Y"}' in found.text
    assert "  code: {numeric: [FILL_IN, FILL_IN], missing: true}" in found.text
    assert '\n# missing: ["", "?", NA, NaN, nan, "null", "-99"]\n#   proposed: -99' in found.text
    assert line_of(found.text, "domain_note").startswith("domain_note: FILL_IN")
    assert found.facts == {
        "listed": ["flag", "a", "b"], "dates": ["day"], "codes": ["code"], "identifier": ["row"],
    }  # fmt: skip
    for fact in (
        "#   no other values than those of a list that everybody knows: flag, a, b\n",
        "#   dates or times, all in one format: day\n",
        "#   a number that often stands for a missing value, far from all other values: code\n",
        "#   running numbers, or a different value in every row: row\n",
    ):
        assert fact in found.text
    assert "one row can change" in found.text


def test_a_card_without_proposals_names_no_facts(tmp_path: Path) -> None:
    found = of_text(tmp_path, "age,ward\n1,a\n2,b\n")
    assert found.facts == {}
    assert "Read from the rows" not in found.text


def test_no_text_of_the_rows_but_constants_is_on_a_card(tmp_path: Path) -> None:
    data, _ = write_survey(tmp_path)
    text = new_card(data, read_columns(data), tmp_path / "card.yaml").text
    table = data.read_bytes().decode("cp1252").splitlines()
    values = {value for line in table[1:] for value in line.split(";") if len(value) > 2}
    public = {text for known in KNOWN_LISTS.values() for text in known} | {"-99"}
    assert {value for value in values - public if value in text} == set()


def test_a_row_changes_the_card_only_where_its_head_says_so(tmp_path: Path) -> None:
    lines = [f"{k % 2},{k}.5,w{k % 3}" for k in range(30)]
    before = of_text(tmp_path, "\n".join(["flag,size,ward", *lines]))
    assert of_text(tmp_path, "\n".join(["flag,size,ward", *lines, "1,9999.5,zz"])) == before
    after = of_text(tmp_path, "\n".join(["flag,size,ward", *lines, "7,1.5,w1"]))
    assert (list(before.facts), list(after.facts)) == (["listed"], [])
    gap = of_text(tmp_path, "\n".join(["flag,size,ward", *lines, "1,,w1"]))
    assert gap.facts["lacks"] == ["size"]
    assert "#   missing values: size\n" in gap.text


def test_the_format_of_the_file_is_on_the_card(tmp_path: Path) -> None:
    found = of_text(tmp_path, "sep=;\na;b\n1.234,5;x\n2,5;y\n")
    assert found.text.count("format: ") == 1
    assert ('format: {separator: ";", decimal: ",", thousands: "."}  # as the') in found.text
    assert found.facts == {"numbers": ["a"]}


def test_marks_of_numbers_can_be_given(tmp_path: Path) -> None:
    text = 'a,b\n"1,234",x\n"2,345",y\n'
    assert 'format: {thousands: ","}' in of_text(tmp_path, text).text
    assert 'format: {decimal: ","}' in of_text(tmp_path, text, Choices(decimal=",")).text
    with pytest.raises(DpreproError, match="`thousands` and `decimal` are both ','"):
        of_text(tmp_path, text, Choices(decimal=",", thousands=","))


def test_numbers_with_decimal_commas_may_be_codes(data: Path) -> None:
    data.write_text(ROWS.replace(".", ","))
    for entry in (Entry("numeric", 0, 120), Entry("target", 0, 120)):
        assert 'decimal: ","' in card_of(data, {"age": entry}).read_text(encoding="utf-8")
    for entry in (Entry("categorical", categories=("41,5", "77,25")), Entry("drop")):
        assert "decimal" not in card_of(data, {"age": entry}).read_text(encoding="utf-8")


def test_what_no_reader_takes_off_is_said(tmp_path: Path) -> None:
    text = 'price;share;x;y;odd\n$1;5 %;1,5;2,5;"1,234.5"\n;6 %;2,5;3,5;"7,000.5"\n'
    found = of_text(tmp_path, text)
    price = line_of(found.text, "  price")
    assert "{numeric: [FILL_IN, FILL_IN], missing: true}" in price
    assert "its numbers have a currency sign, which no command takes off" in price
    assert [warning.partition(":")[0] for warning in found.warnings] == [
        "numbers with a currency sign in price",
        "numbers with a percent sign in share",
        "numbers in odd are written otherwise than those of other columns, which have ',' for "
        "decimals. Write all in one way; if they are codes and no numbers, say `categorical` in a "
        "codebook (--codebook)",
    ]
    assert found.facts["sign"] == ["price", "share"]


@pytest.mark.parametrize(
    ("choices", "lines"),
    [
        (Choices(target="back"), ["task: binary", 'labels: ["no", "yes"]', 'positive: "yes"']),
        (Choices(target="back", positive="no"), ["task: binary", 'positive: "no"']),
        (Choices(target="age"), ["task: regression", "target_bounds: [FILL_IN, FILL_IN]"]),
        (Choices(target="age", positive="41.5"), ["task: binary", 'positive: "41.5"']),
        (Choices(target="ward"), ["task: FILL_IN  # binary or multiclass", "target: ward"]),
        (Choices(target="ward", positive="a"), ["task: binary", "positive: a"]),
        (Choices(unit="id"), ["unit: id", "rows_per_unit: FILL_IN"]),
        (Choices(drop=("id", "ward")), ["drop: [ward, id]"]),
        (Choices(missing=("-99",)), ['missing: ["", "?", NA, NaN, nan, "null", "-99"]']),
    ],
)
def test_what_is_chosen_is_on_the_card(data: Path, choices: Choices, lines: list[str]) -> None:
    text = card_of(data, {}, choices).read_text(encoding="utf-8")
    for line in lines:
        assert f"\n{line}" in text
    for name in (choices.target, choices.unit, *choices.drop):
        assert f"\n  {name}:" not in text


@pytest.mark.parametrize(
    ("codebook", "choices", "said"),
    [
        ({}, Choices(target="bak"), "--target bak: not a column of the file; did you mean 'back'?"),
        ({}, Choices(drop=("id", "x")), "--drop x: not a column of the file. Its columns: age, wa"),
        ({}, Choices(target="id", unit="id"), "'id' is given for --target and for --unit"),
        ({}, Choices(target="id", drop=("id",)), "'id' is given for --target and for --drop"),
        ({}, Choices(positive="yes"), "name the target with --target"),
        ({}, Choices(target="back", positive="yess"), "not a class of 'back'; did you mean 'yes'?"),
        ({"age": Entry("target")}, Choices(target="back"), "more than one target: age, back"),
        ({"age": Entry("unit")}, Choices(unit="id"), "more than one unit: age, id"),
    ],
)
def test_choices_that_do_not_fit_are_refused(
    data: Path, codebook: dict[str, Entry], choices: Choices, said: str
) -> None:
    with pytest.raises(DpreproError) as caught:
        card_of(data, codebook, choices)
    assert said in str(caught.value)


def test_a_chosen_target_keeps_what_the_codebook_says(data: Path) -> None:
    text = card_of(data, {"age": Entry("numeric", 0, 120)}, Choices(target="age")).read_text(
        encoding="utf-8"
    )
    assert "task: regression" in text
    assert "target_bounds: [0, 120]" in text


def test_options_that_no_card_can_have_are_refused() -> None:
    for keys, said in (
        ({"separator": ";;"}, "--separator: "),
        ({"encoding": "utf9"}, "--encoding: 'utf9' is no encoding"),
        ({"decimal": ";"}, "--decimal: "),
        ({"thousands": "_"}, "--thousands: "),
    ):
        with pytest.raises(DpreproError) as caught:
            check_format(keys)
        assert str(caught.value).startswith(said)
    check_format({"separator": "\t", "encoding": None, "thousands": "'"})


def test_features_that_are_numbered_and_alike_are_one_line(tmp_path: Path) -> None:
    names = ["q1", "q2", "q3", "q4", "q6", "q7", "r01", "r02", "r03", "ward"]
    rows = "\n".join(",".join([*(str(k + 2) for _ in names[1:]), "a"]) for k in range(3))
    text = of_text(tmp_path, f"{','.join(names)}\n{rows}\n").text
    lines = [
        line.partition(": {")[0].strip() for line in text.partition("features:\n")[2].split("\n")
    ]
    assert lines == ['"q{1..4}"', "q6", "q7", '"r0{1..3}"', "ward", ""]
    assert "give columns that differ a line of their own" in line_of(text, '  "q{1..4}"')
    gap = of_text(tmp_path, f"{','.join(names)}\n{rows}\n9,,9,9,9,9,9,9,9,a\n").text
    assert line_of(gap, '  "q{1..4}"').startswith(
        '  "q{1..4}": {numeric: [FILL_IN, FILL_IN], missing'
    )


def test_the_header_of_arff_fills_in_the_card(tmp_path: Path) -> None:
    path = tmp_path / "people.arff"
    path.write_text(
        "@relation r\n@attribute age integer [16,90]\n@attribute ward {a,b}\n"
        "@attribute y {no,yes}\n@data\n17,a,no\n"
    )
    card = tmp_path / "card.yaml"
    card.write_text(new_card(path, read_columns(path), card, None, Choices(target="y")).text)
    text = card.read_text(encoding="utf-8")
    assert "  age: {numeric: [16, 90]}  # from the ARFF header\n" in text
    assert "  ward: {categories: [a, b]}  # from the ARFF header\n" in text
    assert "header of the file, and no row was read" in text
    found = load_card(card)
    assert (found.public_target, found.domain_note) == (
        ("no", "yes"),
        "Bounds and categories are those that the header of the file declares.",
    )


def test_an_index_and_what_a_type_says_are_proposed_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"ok": [True, False], "x": [1.5, 2]}, index=["a", "b"]).to_parquet(path)
    text = new_card(path, read_columns(path), tmp_path / "card.yaml").text
    assert "__index_level_0__" not in text  # no reader takes it for a column
    assert '  ok: {categories: ["False", "True"]}  # from the type\n' in text


@pytest.mark.parametrize("observed", [False, True])
def test_missing_values_of_a_boolean_column_are_proposed(tmp_path: Path, observed: bool) -> None:
    path, card = tmp_path / "rows.parquet", tmp_path / "card.yaml"
    pd.DataFrame({
        "ok": pd.array([True, None, False], "boolean"), "none": [None] * 3,
        "y": ["no", "yes", "no"],
    }).to_parquet(path)  # fmt: skip
    text = new_card(
        path, read_columns(path, observed=observed), card, None, Choices(target="y")
    ).text
    assert '  ok: {categories: ["False", "True"], missing: true}  # from the type\n' in text
    assert "  none: {categories: [FILL_IN], missing: true}  # all possible values\n" in text
    assert "#   missing values: ok" in text
    if observed:
        card.write_text(text.replace("FILL_IN", "a"))
        assert load(card).X.isna().sum().tolist() == [1, 3]


OBSERVED_ROWS = """\
age;size;day;ward;flag;code;empty;y
17;1,25;03.05.2014;b;0;4;;low
88;9,75;01.01.2016;a;1;-99;;high
40;;02.02.2015;a;0;8;;mid
"""


def test_observed_values_are_marked_on_each_line(tmp_path: Path) -> None:
    found = of_text(tmp_path, OBSERVED_ROWS, Choices(target="y"), observed=True)
    card = tmp_path / "card.yaml"
    card.write_text(found.text.replace("[FILL_IN]", "[none]"))
    mark = "  # observed: read from the rows"
    for line in (
        "labels: [high, low, mid]",
        "  age: {numeric: [10, 90]}",
        "  size: {numeric: [1, 10], missing: true}",
        '  day: {numeric: [2014, 2016], date: "%d.%m.%Y"}',
        "  ward: {categories: [a, b]}",
        '  flag: {categories: ["0", "1"]}',
        "  code: {numeric: [4, 8], missing: true}",
        'missing: ["", "?", NA, NaN, nan, "null", "-99"]',
    ):
        assert line_of(found.text, line.partition(":")[0]) == line + mark
    loaded = load_card(card)
    assert loaded.private
    assert loaded.domain_note == (
        "The domain was read from the rows, so it is public only if they are."
    )
    assert '# WARNING: bounds and categories marked "observed" are values of the rows' in found.text
    assert "observed" not in of_text(tmp_path, OBSERVED_ROWS, Choices(target="y")).text


def test_an_observed_class_to_predict_is_not_guessed(tmp_path: Path) -> None:
    rows = "x,y\n1.5,sick\n2.5,well\n"
    text = of_text(tmp_path, rows, Choices(target="y"), observed=True).text
    assert "labels: [sick, well]  # observed: read from the rows\npositive: FILL_IN" in text
    text = of_text(tmp_path, rows, Choices(target="x"), observed=True).text
    assert "target_bounds: [1, 3]  # observed: read from the rows" in text


def test_observed_texts_of_which_there_are_many_are_left_out(tmp_path: Path) -> None:
    rows = "\n".join(f"w{k % 101},1" for k in range(400))
    text = of_text(tmp_path, f"ward,x\n{rows}\n", observed=True).text
    assert "  ward: {categories: [FILL_IN]}" in text
    assert "w100" not in text


def test_a_survey_takes_fifteen_lines_with_a_codebook(tmp_path: Path) -> None:
    data, path = write_survey(tmp_path)
    columns = read_columns(data, missing=missing_codes(path))
    card = tmp_path / "survey.yaml"
    found = new_card(data, columns, card, read_codebook(path, columns.forms))
    card.write_text(found.text)
    written = len(CODEBOOK.splitlines()) - 1  # its header is no line about a column
    edited = len(read_yaml(card, text_only=True).unfilled)
    assert len(columns.forms) == 60
    assert (edited, written + edited) == (0, 14)
    loaded = load_card(card)
    features = loaded.features or {}
    assert len(features) == 58
    assert (loaded.target, loaded.positive, loaded.drop) == ("smoker", "ja", ["case_id"])
    assert loaded.missing[-2:] == ["-99", "-98"]
    assert (loaded.format.encoding, loaded.format.separator) == ("cp1252", ";")
    assert (loaded.format.decimal, loaded.format.thousands) == (",", ".")
    assert features["interview"].date == "%d.%m.%Y"
    assert features["interview"].numeric == (2023, 2024.9973)
    assert features["sex"].category_of == {"1": "male", "2": "female"}
    assert features["work"].groups["other"] == ["8", "9"]
    assert (features["q40"].ordered, features["q40"].missing) == (True, True)
    assert features["q40"].category_of["5"] == "agree"
    assert features["has_10"].categories == ["nein", "ja"]
    assert found.facts == {"numbers": ["income", "weight"]}


def test_a_survey_without_a_codebook_takes_fifteen_lines_as_well(tmp_path: Path) -> None:
    data, _ = write_survey(tmp_path)
    card = tmp_path / "survey.yaml"
    card.write_text(new_card(data, read_columns(data), card, None, Choices(target="smoker")).text)
    assert len(read_yaml(card, text_only=True).unfilled) == 10


def test_lists_that_several_lines_share_are_named_once(data: Path) -> None:
    shared = Entry("categorical", categories=("a", "b"), shared="wards", relabel={"1": "a"})
    text = card_of(data, {"ward": shared, "id": shared}).read_text(encoding="utf-8")
    assert "category_lists:\n  wards: [a, b]\n" in text
    assert text.count('{categories: wards, groups: {a: ["1"]}}') == 2
    own = Entry("categorical", categories=("x", "y"), shared="no-yes")
    text = card_of(data, {"ward": own, "id": own}).read_text(
        encoding="utf-8"
    )  # another list of a known name
    assert '  no-yes: [x, "y"]\n' in text
    assert '  back: {categories: ["no", "yes"]}' in text


def test_a_date_of_the_codebook_gets_the_format_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("day,x\n2014-05-03,1\n2015-01-01,2\n")
    entry = Entry("date", 2014, 2020)
    found = new_card(path, read_columns(path), tmp_path / "c.yaml", Codebook({"day": entry}))
    assert '  day: {numeric: [2014, 2020], date: "%Y-%m-%d"}' in found.text
    assert found.facts == {"dates": ["day"]}
    path.write_text("day,x\nMay,1\nJune,2\n")
    found = new_card(path, read_columns(path), tmp_path / "c.yaml", Codebook({"day": entry}))
    assert "  day: {numeric: [2014, 2020], date: FILL_IN}" in found.text


def test_why_the_domain_is_public_is_to_be_said_where_a_codebook_does_not(data: Path) -> None:
    codebook = {"age": Entry("numeric", 0, 120), "id": Entry("drop"),
                "back": Entry("target", categories=("no", "yes"))}  # fmt: skip
    text = card_of(data, codebook).read_text(encoding="utf-8")
    assert line_of(text, "domain_note").startswith("domain_note: FILL_IN")  # ward is in no line
    text = card_of(data, codebook | {"ward": Entry("categorical", categories=("a", "b"))})
    assert "those of the codebook" in line_of(text.read_text(encoding="utf-8"), "domain_note")


def test_two_formats_of_dates_are_named_and_one_is_not(tmp_path: Path) -> None:
    both = of_text(tmp_path, "day,x\n01/02/2014,1\n03/04/2015,2\n").text
    assert "are dates or times (%d/%m/%Y and %m/%d/%Y fit); check" in line_of(both, "  day")
    one = of_text(tmp_path, "day,x\n01/02/2014,1\n13/04/2015,2\n").text
    assert "are dates or times; check" in line_of(one, "  day")


def test_codes_are_proposed_beside_those_that_are_given(tmp_path: Path) -> None:
    text = "a,b\n1,-98\n-99,5\n7,6\n"
    found = of_text(tmp_path, text, Choices(missing=("k.A.",))).text
    assert '\nmissing: ["", "?", NA, NaN, nan, "null", k.A.]\n# missing: [' in found
    assert "take away the # before `missing` and take away the line above it" in found
    assert "and take away the line above" not in of_text(tmp_path, text).text


def test_observed_numbers_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = "a;b\n1.500,5;x\n8.900,25;y\n"
    assert "  a: {numeric: [1000, 9000]}" in of_text(tmp_path, text, observed=True).text
