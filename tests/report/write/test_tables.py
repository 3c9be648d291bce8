import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from dprepro.judge.verdicts import Verdict
from dprepro.report.write.tables import rich_tables
from dprepro.results.folder import ResultCell
from tests.report.journals import task
from tests.report.samples import CELLS, COMPARE, PLAIN, SPENT, measured, tables


def shown(style=PLAIN, cells=CELLS, width=300):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(rich_tables(tables(style, cells), style))
    return console.export_text(clear=False), console.export_text(styles=True)


def test_rich_shows_values_marks_and_reasons():
    text, styled = shown()
    assert "0.883 ± 0.005" in text
    assert "0.700 ± 0.005 [3/25]" in text
    assert "[0/25, 2 failed]" in text
    assert "[skipped]" in text
    assert "broken: ValueError: a|b_c" in text
    assert "absent: not installed" in text
    assert re.search(r"\x1b\[1m0\.883", styled), "the best is bold"
    assert not re.search(r"\x1b\[1m0\.800", styled)


def test_rich_compares_below_each_value():
    text, _ = shown(COMPARE)
    lines = text.splitlines()
    assert "0.883 ± 0.005*≈" in text, "the best has a star, then comes the verdict"
    assert "0.800 ± 0.005 ↓" in text
    place = next(line for line in lines if "0.883 ± 0.005*≈" in line)
    below = lines[lines.index(place) + 1]
    assert below[place.index("0.883") :].startswith("(0.883 ± 0.005)")
    assert "(0.558 ± 0.045)" in text
    legend = next(line for line in lines if line.startswith("Below, in brackets"))
    found = {v for v in Verdict if f"{v.symbol} {v.value}" in legend}
    judged = {
        e.verdict.verdict
        for t in tables(COMPARE)
        for g in t.groups
        for r in g.rows
        for e in r
        if e.verdict
    }
    assert found == judged
    assert Verdict.IMPOSSIBLE not in found


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_narrow_console_keeps_marks_verdicts_and_bold(width):
    text, styled = shown(COMPARE, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert all(f" {t}" in text for t in ("0.883*≈", "0.800 ↓", "(0.880)", "[3/25]"))
    assert "[0/25, 2 failed]" in text
    assert re.search(r"\x1b\[1m0\.883", styled)


def test_many_methods_are_rows_and_few_are_columns():
    many = shown(width=80)[0].splitlines()
    heads = [line.split() for line in many if "ε" in line and not line.startswith("Mean")]
    assert heads[0][:3] == ["Adult-Income", "ε", "1"]
    assert [line.split()[0] for line in many if "0.883 ± 0.005*" in line] == ["DPEBM-GDP"]
    places = [line.split()[0] for line in many if line.strip()]
    assert places.index("DPEBM-GDP") < places.index("—") < places.index("mine_&_50%")
    few = shown(cells=CELLS[:2], width=80)[0].splitlines()
    assert next(line.split() for line in few if "Dataset" in line)[:2] == ["Dataset", "ε"]
    assert next(line.split()[0] for line in few if "0.883" in line) == "Adult-Income"


def test_a_method_without_a_result_on_a_dataset_has_no_row():
    telco = shown(width=80)[0].split("Telco-Churn")[1]
    assert "DPEBM-GDP" in telco
    assert "mine_" not in telco.split("Mean over")[0]


def test_standard_deviations_stand_where_there_is_room_or_on_request():
    cells = [measured(0.8 + k / 100, epsilon=eps) for k, eps in enumerate((0.5, 1, 2, 4, 8))]
    cells += [measured(0.7, f"own-{k}") for k in range(4)]
    assert "0.800 ± 0.005" in shown(cells=cells, width=120)[0]
    narrow = shown(cells=cells, width=70)[0]
    assert "± 0" not in narrow
    assert "0.800 " in narrow
    assert "(--sd: always)" in " ".join(narrow.split())
    asked = shown(replace(PLAIN, spread=True), cells, width=70)[0]
    assert "0.800 ± 0.005" in asked
    assert "Mean ± standard deviation over splits. *" in " ".join(asked.split())


def test_points_stand_below_each_other():
    cells = [measured(mean, f"own-{k}") for k, mean in enumerate((0.5, 1.25, 10.5, 0.25, 0.75))]
    cells.append(measured(0.6, "own-0", epsilon=2.0))
    text = shown(cells=cells, width=80)[0].split("Mean over")[0]
    lines = [line for line in text.splitlines() if line.startswith(" own-")]
    assert len(lines) == 5
    assert len({line.index(".") for line in lines}) == 1


def test_names_are_no_markup():
    assert "[red]" in shown(PLAIN, [measured(0.7, "[red]")])[0]


def test_the_epsilon_really_spent_is_shown_on_request():
    spent = ResultCell(
        task(epsilon=0.5), ("t",), {"auc": (0.87, 0.88)}, planned=2, spent_epsilon=0.4371
    )
    assert "ε 0.437" in shown(SPENT, [spent])[0]
    assert "spent epsilon, which the releases of the ledger" in shown(SPENT, [spent])[0]
    assert "ε 0.437" not in shown(PLAIN, [spent])[0]


LADDER = [
    measured(0.8, epsilon=epsilon, dataset=dataset)
    for dataset in ("adult", "telco")
    for epsilon in (0.5, 1.0, 2.0)
]


def test_a_dataset_is_named_in_its_first_row_and_set_apart_from_the_next():
    lines = [line.split() for line in shown(PLAIN, LADDER)[0].splitlines()]
    first = next(i for i, line in enumerate(lines) if line[:2] == ["Adult-Income", "0.5"])
    assert [line[:2] for line in lines[first : first + 7]] == [
        ["Adult-Income", "0.5"], ["1", "0.800"], ["2", "0.800"], [],
        ["Telco-Churn", "0.5"], ["1", "0.800"], ["2", "0.800"],
    ]  # fmt: skip
