import math

from dprepro.report.layout.words import legend, number, words
from dprepro.report.levels import level
from dprepro.report.write.markdown import markdown_tables
from tests.report.samples import COMPARE, PLAIN, SPENT, measured, tables


def test_numbers_have_the_digits_asked_for():
    assert number(0.87549, 0.0051, 3) == "0.875 ± 0.005"
    assert number(85652.4, 2724.0, 0) == "85652 ± 2724"
    assert number(0.5, None, 2) == "0.50"
    assert (level(0.5), level(1.0), level(math.inf)) == ("0.5", "1", "Non-Private")


def test_the_legend_explains_only_what_is_there():
    complete = tables(PLAIN, [measured(0.883)])
    assert legend(complete, PLAIN) == [
        "Mean ± standard deviation over splits; the best of a row is bold."
    ]
    partial = "\n".join(legend(tables(PLAIN, [measured(0.883, splits=3)]), PLAIN))
    assert "[n/m]" in partial
    assert "verdict" not in partial
    assert "verdict" in "\n".join(legend(tables(COMPARE, [measured(0.883)]), COMPARE))
    own = tables(COMPARE, [measured(0.883, dataset="mine")])
    assert legend(own, COMPARE) == legend(complete, PLAIN)
    assert "ledger" not in "\n".join(legend(complete, SPENT))


def test_an_entry_without_a_result_is_blank():
    (table,) = tables(PLAIN, [measured(0.883), measured(0.9, "ebm", math.inf, dataset="telco")])
    blank = words(table.groups[1].rows[0][0], table.groups[1], "auc", PLAIN)
    assert blank.measured == "0.900 ± 0.005"
    assert "| — |" in markdown_tables(
        tables(PLAIN, [measured(0.883), measured(0.8, "mine", 2.0)]), PLAIN
    )
