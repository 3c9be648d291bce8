import math
from decimal import Decimal

import pytest

from dprepro.errors import DpreproError
from dprepro.published.claims import Claim, half_unit, load_claims
from dprepro.published.document import load_documents
from dprepro.published.published import FOLDER

FILE = "dp_ebm_2021_claims.yaml"
PAPER = load_documents()["dp-ebm-2021"]
CLAIMS = {claim.name: claim for claim in load_claims()[PAPER.paper]}


def test_every_kind_of_claim_of_the_dp_ebm_paper_is_there():
    assert {type(claim).__name__ for claim in CLAIMS.values()} == {
        kind.__name__ for kind in Claim.__subclasses__()
    }


@pytest.mark.parametrize("name", list(CLAIMS))
def test_claims_give_their_place_and_their_words(name):
    claim = CLAIMS[name]
    assert claim.section.startswith("4.1")
    assert claim.quote.endswith(".")
    assert len(claim.quote.split()) > 8


@pytest.mark.parametrize(
    ("name", "datasets", "epsilons", "count"),
    [
        ("average-auroc", 4, {4.0}, 16),
        ("loss-at-most", 4, {0.5, math.inf}, 8),
        ("best-in-all", 8, {0.5, 1.0, 2.0, 4.0, 8.0}, 160),
        ("gdp-against-classic", 8, {0.5, 1.0, 2.0, 4.0, 8.0}, 80),
        ("lightgbm-ahead", 8, {math.inf}, 16),
    ],
)
def test_claims_speak_of_these_cells(name, datasets, epsilons, count):
    cells = CLAIMS[name].cells(PAPER.cells())
    assert len(cells) == count
    assert len({cell.dataset for cell in cells}) == datasets
    assert {cell.epsilon for cell in cells} == epsilons


@pytest.mark.parametrize(("printed", "half"), [("0.62", 0.005), ("0.050", 0.0005), ("40", 0.5)])
def test_half_a_unit_follows_the_digits_as_printed(printed, half):
    assert half_unit(Decimal(printed)) == pytest.approx(half)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: best-in-all", "name: loss-at-most", "two claims are called 'loss-at-most'"),
        ("methods: dpboost,", "methods: dbpoost,", "did you mean 'dpboost'"),
        ("method: lightgbm", "method: dpboost", "'dpboost' is not printed together"),
        ("epsilon: 0.5", "epsilon: 0.7", "no printed cell has 0.7"),
        ("value: 0.62", "value: high", "figures.DPBoost.value"),
        ("rivals: ", "rival: ", "unknown key"),
        ("[dp-ebm-gdp, dp-ebm-classic]", "[dp-ebm-gdp]", "noticeable.*methods"),
        ("paper: dp-ebm-2021", "paper: dp-ebm-1921", "unknown document"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, old, new, message):
    text = (FOLDER / FILE).read_text()
    assert old in text
    (tmp_path / FILE).write_text(text.replace(old, new, 1))
    with pytest.raises(DpreproError, match=message):
        load_claims(tmp_path)
