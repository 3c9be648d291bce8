import itertools

import pytest
from pydantic import ValidationError

from dprepro.papers.published_cell import load_published
from dprepro.papers.schema import Selector
from dprepro.runtime.errors import DpreproError

CELLS = load_published("dp-ebm-2021")


def test_an_empty_selector_matches_everything():
    assert all(Selector().matches(cell) for cell in CELLS)


def test_a_scalar_is_a_list_of_one():
    assert Selector(datasets="adult", epsilons=1) == Selector(datasets=["adult"], epsilons=[1.0])


def test_a_selector_matches_the_product_of_its_lists():
    datasets, methods, epsilons = ["adult", "telco"], ["dpboost-2021", "dp-ebm-gdp-2021"], [0.5, 8]
    chosen = Selector(tables="2", datasets=datasets, methods=methods, epsilons=epsilons)
    found = {(c.dataset, c.method, c.epsilon) for c in CELLS if chosen.matches(c)}
    assert found == set(itertools.product(datasets, methods, epsilons))


def test_what_is_printed_passes():
    Selector(datasets=["adult", "telco"], epsilons=["inf"]).require_printed(CELLS, "file")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"datasets": ["adult", "adlut"]}, "file: datasets: no printed cell has 'adlut'; did you"),
        ({"methods": "ebm", "epsilons": 1}, "file: methods: 'ebm' is not printed together"),
        ({"datasets": "adult", "tables": "3"}, "not printed together"),
    ],
)
def test_what_is_not_printed_is_refused(fields, message):
    with pytest.raises(DpreproError, match=message):
        Selector(**fields).require_printed(CELLS, "file")


def test_a_selector_can_name_one_of_several_metrics():
    cells = [cell for cell in load_published("lazybb-2022") if cell.table == "11"]
    chosen = Selector(tables="11", metrics="rademacher_bound")
    assert [c.metric for c in cells if chosen.matches(c)] == ["rademacher_bound"] * 3


def test_a_selector_reads_as_words():
    assert Selector().words == "all cells"
    assert Selector(datasets="adult", methods=["ebm", "mlp"], epsilons=1).words == (
        "adult, ebm, mlp, 1.0"
    )


def test_what_was_read_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Selector().tables = ["2"]
