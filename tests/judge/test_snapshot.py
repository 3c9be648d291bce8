import pytest

from dprepro.judge.snapshot import COLUMNS, changes, in_text, read_recorded, recorded_text
from dprepro.runtime.errors import DpreproError

PLACE = {
    "paper": "dp-ebm-2021", "table": "2", "dataset": "adult", "method": "dp-ebm-gdp-2021",
    "epsilon": "0.5", "metric": "auc", "config": "",
}  # fmt: skip


def row(**fields):
    return {**dict.fromkeys(COLUMNS, ""), **PLACE, "mean": "0.875", "verdict": "same", **fields}


def test_rows_come_back_from_the_file_in_the_order_of_their_keys(tmp_path):
    rows = [row(dataset="telco"), row(), row(epsilon="8")]
    path = tmp_path / "verdicts.csv"
    path.write_text(recorded_text([{**r, "more": "x"} for r in rows]))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("paper,table,dataset,method,epsilon,metric,config,mean,sd,splits,")
    assert lines[0].endswith("z,ci_low,ci_high,margin,equivalent,verdict")
    assert read_recorded(path) == [row(), row(epsilon="8"), row(dataset="telco")]


def test_names_with_ends_of_lines_and_formulas_come_back(tmp_path):
    names = ["a\nb", "a\u2028b", "a\x85b", "=1+1", 'quo"te, |']
    path = tmp_path / "verdicts.csv"
    path.write_text(recorded_text([row(method=name) for name in names]), encoding="utf-8")
    assert sorted(found["method"] for found in read_recorded(path)) == sorted(names)


def test_numbers_have_nine_digits_and_nothing_is_empty():
    assert [in_text(value) for value in (1 / 3, 25, None, "same", 0.5)] == [
        "0.333333333", "25", "", "same", "0.5",
    ]  # fmt: skip


GOOD = recorded_text([row()]).encode()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (GOOD.replace(b"sd", b"SD"), "the columns are not paper, table"),
        (GOOD + b"1,2\n", "another number of fields"),
        (GOOD + b"x," * len(COLUMNS) + b"x\n", "another number of fields"),
    ],
)
def test_a_damaged_file_is_refused_with_the_way_out(tmp_path, content, problem):
    path = tmp_path / "verdicts.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DpreproError, match=f"verdicts.csv: .*{problem}.*`dprepro check --record`"):
        read_recorded(path)


def test_each_cell_that_differs_is_named_once_with_both_values():
    before = [row(z="1.5"), row(dataset="telco"), row(method="gone")]
    now = [row(mean="0.876", verdict="better"), row(dataset="telco"), row(method="new")]
    adult = "dp-ebm-2021 table 2: adult, dp-ebm-gdp-2021, epsilon 0.5, auc"
    assert changes(before, now) == [
        f"{adult}: mean 0.876, recorded 0.875; z none, recorded 1.5; verdict better, recorded same",
        "dp-ebm-2021 table 2: adult, gone, epsilon 0.5, auc: was recorded, and is no longer there",
        "dp-ebm-2021 table 2: adult, new, epsilon 0.5, auc: was not recorded",
    ]
    assert changes(before, before) == []


def test_a_measured_cell_that_no_document_prints_is_named_by_its_config():
    own = row(paper="", table="", epsilon="", config="mine")
    (line,) = changes([], [own])
    assert line == "adult, dp-ebm-gdp-2021, epsilon inf, auc (mine): was not recorded"


@pytest.mark.parametrize(
    ("value", "is_noticed"),
    [("1.0000009", False), ("1.0000012", True), ("-1", True), ("", True), ("none", True)],
)
def test_numbers_may_differ_by_a_millionth_of_themselves(value, is_noticed):
    assert bool(changes([row(z="1")], [row(z=value)])) is is_noticed
    assert bool(changes([row(z=value)], [row(z="1")])) is is_noticed
    assert changes([row(z="0.001")], [row(z="0.0010001")])
    assert not changes([row(z="0")], [row(z="-0")])
