import math
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from dprepro.papers import document as document_module
from dprepro.papers.document import (
    Document,
    Impossible,
    OneDraw,
    Protocol,
    TableLayout,
    Unchecked,
    load_documents,
    select_documents,
)
from dprepro.papers.hypotheses import load_hypotheses
from dprepro.papers.published_cell import FOLDER, load_published
from dprepro.runtime.errors import DpreproError

DOCUMENTS = load_documents()
PAPER = DOCUMENTS["dp-ebm-2021"]


def layout_with(folder: Path, old: str, new: str) -> Path:
    text = (FOLDER / "dp-ebm-2021" / "paper.yaml").read_text(encoding="utf-8")
    assert old in text
    (folder / "dp-ebm-2021").mkdir()
    path = folder / "dp-ebm-2021" / "paper.yaml"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize("paper", list(DOCUMENTS))
def test_a_layout_names_only_what_is_printed(paper):
    document = DOCUMENTS[paper]
    for name, layout in document.tables.items():
        printed = [c for c in load_published(paper) if c.table == name]
        if not printed:
            continue  # a picture, whose layout orders our results
        assert set(layout.datasets) <= {c.dataset for c in printed}
        assert {c.metric for c in printed if c.dataset in layout.datasets} == {
            layout.metric,
            *layout.also,
        }
        assert len({c.method for c in layout.columns}) == len(layout.columns)


def test_the_dp_ebm_layout_has_a_place_for_each_of_184_cells():
    places = {
        (name, dataset, column.label(epsilon), epsilon)
        for name, layout in PAPER.tables.items()
        for dataset in layout.datasets
        for column in layout.columns
        for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0, math.inf)
    }
    cells = PAPER.cells()
    assert len(cells) == 184
    assert {(c.table, c.dataset, c.method, c.epsilon) for c in cells} <= places


def test_both_dp_ebm_columns_share_one_non_private_row():
    columns = {column.method: column for column in PAPER.tables["2"].columns}
    assert columns["dp-ebm-gdp-2021"].label(math.inf) == columns["dp-ebm-classic-2021"].label(
        math.inf
    )
    assert columns["dp-logistic"].label(math.inf) == "logistic"
    assert columns["dpboost-2021"].label(math.inf) == "lightgbm"
    assert columns["dpboost-2021"].label(0.5) == "dpboost-2021"


def test_pictures_say_what_draws_them_and_which_need_private_data():
    notes = {n.partition("Figure ")[2][:1]: n for n in PAPER.notes if "is drawn by" in n}
    assert list(notes) == ["3", "4", "5"]
    for number, note in notes.items():
        assert ("impossible: real patient data" in note) == (number in "34")
        assert "`dprepro plot shapes " in note


def test_of_dp_llm_only_the_hospital_records_are_impossible():
    paper = load_documents()["dp-llm-2020"]
    assert {c.dataset for c in paper.cells() if paper.why_impossible(c)} == {"henan"}


def test_only_the_private_healthcare_data_is_impossible():
    impossible = [cell for cell in PAPER.cells() if PAPER.why_impossible(cell)]
    assert {cell.dataset for cell in impossible} == {"healthcare"}
    assert len(impossible) == 23
    assert "never released" in PAPER.why_impossible(impossible[0])


def test_cells_leave_out_datasets_without_a_place():
    slides = DOCUMENTS["replication-slides-2025"]
    layout = slides.tables["non-dp-models"].model_copy(update={"datasets": {"telco": "Telco"}})
    part = slides.model_copy(update={"tables": {"non-dp-models": layout}})
    assert {cell.dataset for cell in part.cells()} == {"telco"}
    assert len(part.cells()) == 5 < len(load_published(slides.paper))


def test_every_printed_cell_of_the_replication_has_a_place():
    for paper, count in (("replication-report-2025", 40), ("replication-slides-2025", 33)):
        document = DOCUMENTS[paper]
        assert document.cells() == load_published(paper)
        assert len(document.cells()) == count
        for cell in document.cells():
            columns = document.tables[cell.table].columns
            assert cell.method in {column.label(cell.epsilon) for column in columns}


def test_documents_are_chosen_by_name():
    assert select_documents("dp-ebm-2021") == [PAPER]
    assert select_documents() == list(DOCUMENTS.values())
    assert select_documents("dp-ebm") == [PAPER]
    assert select_documents("replication-report")[0].paper == "replication-report-2025"
    with pytest.raises(
        DpreproError, match="could be replication-report-2025 or replication-slides"
    ):
        select_documents("replication")
    with pytest.raises(DpreproError, match="did you mean 'dp-ebm-2021'"):
        select_documents("dp-emb-2021")
    with pytest.raises(DpreproError, match=r"no document ''\. Allowed: dp-ebm-2021"):
        select_documents("")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("splits: 25", "splits: none", "protocol.splits"),
        ("splits: 25, ", "", "splits"),
        ("splits: 25, ", "splits: 25, judged_on: 26, ", "`judged_on` must be at most `splits`, 25"),
        ("test_share: 0.2, ", "", "random splits need `test_share`"),
        ("splits: 25, ", "splits: 25, evaluation: folds, ", "random splits need `test_share`"),
        ("impossible:", "imposible:", "imposible"),
        ("- datasets: healthcare", "- datasets: helthcare", "no printed cell has 'helthcare'"),
        ("paper: dp-ebm-2021", "paper: dp-ebm-1921", "unknown document 'dp-ebm-1921'"),
    ],
)
def test_a_wrong_layout_is_refused_with_file_and_key(tmp_path, old, new, message):
    source = layout_with(tmp_path, old, new)
    with pytest.raises(DpreproError, match=message) as error:
        load_documents(tmp_path)
    assert str(source) in str(error.value) or "unknown document" in message


def test_a_table_and_a_dataset_may_have_a_protocol_of_their_own():
    folds = Protocol(splits=5, evaluation="folds", delta=0)
    held = Protocol(splits=3, evaluation="test-set", delta=0)
    layout = PAPER.tables["2"].model_copy(update={"protocol": folds, "protocols": {"adult": held}})
    paper = PAPER.model_copy(update={"tables": {**PAPER.tables, "2": layout}})
    assert paper.protocol_of("2", "adult") == held
    assert paper.protocol_of("2", "telco") == folds
    assert paper.protocol_of("3", "wine-white") == PAPER.protocol
    assert (folds.held_out, held.held_out, PAPER.protocol.held_out) == (0.2, 0.0, 0.2)


def test_stratified_splits_have_a_share_as_random_ones_have():
    assert Protocol(splits=3, evaluation="stratified", test_share=0.3, delta=0).held_out == 0.3
    with pytest.raises(ValueError, match="random splits need `test_share`"):
        Protocol(splits=3, evaluation="stratified", delta=0)


def test_the_notes_say_what_printed_repeats_share():
    notes = load_documents()["maddock-2022"].notes
    assert any("printed repeats that share one split count as a single run" in n for n in notes)
    slides = load_documents()["replication-slides-2025"].notes
    assert any("printed splits that share one draw of noise count as" in n for n in slides)


def test_the_restarts_of_dp_llm_are_ten_in_print_of_which_three_are_judged():
    protocol = load_documents()["dp-llm-2020"].protocol_of("fig5", "mnist")
    assert (protocol.splits, protocol.judged_on, protocol.needed) == (10, 3, 3)
    assert PAPER.protocol.needed == PAPER.protocol.splits == 25


@pytest.mark.parametrize(
    ("changed", "is_right"),
    [
        ({"splits": 0}, False),
        ({"splits": 1}, True),
        ({"judged_on": 0}, False),
        ({"judged_on": 1}, True),
        ({"judged_on": 25}, True),
        ({"judged_on": 26}, False),
        ({"test_share": 0.0}, False),
        ({"test_share": 0.01}, True),
        ({"test_share": 1.0}, False),
        ({"delta": -1e-9}, False),
        ({"delta": 0.0}, True),
        ({"delta": 1.0}, False),
    ],
)
def test_a_protocol_is_one_that_could_be_run(changed, is_right):
    fields = {"splits": 25, "test_share": 0.2, "delta": 1e-6, **changed}
    if is_right:
        assert Protocol(**fields).model_dump(include=changed.keys()) == changed
    else:
        with pytest.raises(ValidationError):
            Protocol(**fields)


def test_folds_of_several_partitions_hold_out_a_share_of_one():
    fields = {"splits": 200, "evaluation": "folds", "delta": 0.0}
    assert Protocol(**fields, folds=5).held_out == 0.2
    assert Protocol(**fields).held_out == 1 / 200
    with pytest.raises(ValidationError, match="`folds` is for `evaluation: folds`, not for random"):
        Protocol(splits=5, test_share=0.2, delta=0.0, folds=5)


def test_other_rows_overlap_as_test_rows_by_training_rows():
    fields = {"splits": 25, "test_share": 0.2, "delta": 1e-6}
    assert Protocol(**fields, other_rows=True).overlap == pytest.approx(0.25)
    assert Protocol(**fields).overlap == 0.0


def test_a_protocol_for_no_dataset_of_the_table_is_refused():
    own = {"adult": PAPER.protocol, "telko": PAPER.protocol}
    with pytest.raises(ValidationError, match="names 'telko', no dataset"):
        TableLayout(title="T", metric="auc", datasets={"adult": "A"}, columns=[], protocols=own)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Impossible, "reason"),
        (OneDraw, "reason"),
        (Unchecked, "place"),
        (Unchecked, "states"),
        (Unchecked, "reason"),
    ],
)
def test_what_is_left_out_has_its_reason(kind, text):
    fields = dict.fromkeys(("place", "states") if kind is Unchecked else (), "W") | {"reason": "W"}
    assert getattr(kind(**fields), text) == "W"
    with pytest.raises(ValidationError, match=text):
        kind(**{**fields, text: ""})


def test_a_multiple_has_the_spread_of_the_other_only_where_that_is_known(monkeypatch):
    paper = DOCUMENTS["lazybb-2022"]
    at = {c.metric: c for c in paper.cells() if (c.table, c.epsilon) == ("5", 1.0)}
    count, share = at["n_features"], at["pct_features"]
    assert paper.spread_of(count) == count.std
    assert paper.spread_of(share) == pytest.approx(count.std * share.mean / count.mean)
    for others in ([], [replace(count, mean=0.0)], [replace(count, std=None)]):
        monkeypatch.setattr(document_module, "load_published", lambda _, o=others: [share, *o])
        assert Document(**paper.model_dump()).spread_of(share) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    selected_from: 39\n", "", "selected_from"),
        ("    selected_from: 39\n", "    selected_from: 1\n", "selected_from"),
        ("    selected_on: *dpboost\n", "", "selected_on"),
        ("    selected_on: *wines\n", "    selected_on: []\n", "selected_on"),
        (
            "    selected_from: 39\n",
            "    selected_from: 39\n    epsilons: [0.5]\n",
            "epsilons",
        ),
        ("metrics: [auc, rmse]", "metrics: [auc, accuracy]", "no printed cell has 'accuracy'"),
        (
            "    methods: dpboost-2021\n    selected_from: 46",
            "    methods: dpboost\n    selected_from: 46",
            "no printed cell has 'dpboost'",
        ),
        (
            "    datasets: telco\n    methods: dpboost-2021\n",
            "    datasets: [telco, adult]\n    methods: dpboost-2021\n",
            "two entries hold .*adult, dpboost-2021",
        ),
    ],
)
def test_a_wrong_choice_is_refused(tmp_path, old, new, message):
    """A choice says from how many settings, on which printed cells, and is one for columns."""
    layout_with(tmp_path, old, new)
    with pytest.raises(DpreproError, match=message):
        load_documents(tmp_path)


def test_choices_count_at_least_the_hypotheses_that_were_tried():
    tried = defaultdict(set)
    for question in load_hypotheses():
        for dataset in question.datasets:
            place = (question.paper, question.table, dataset, question.method)
            own = [h for h in question.tried if "other splits" not in h.label]
            tried[place] |= {(h.label, h.dataset) for h in own}
    counted = 0
    for document in DOCUMENTS.values():
        for cell in document.cells():
            choice = document.choice_of(cell)
            known = tried[document.paper, cell.table, cell.dataset, cell.method]
            # The sizes of LightGBM and EBM were tried, but their defaults are what is judged.
            if choice and choice.what != "the rows":
                counted += bool(known)
                assert choice.selected_from >= len(known), cell
    assert counted > 100


def test_the_columns_of_the_dp_ebm_paper_that_were_chosen():
    """Three columns of seven datasets, and the white wines for the four others of Table 3."""
    chosen = Counter(cell.method for cell in PAPER.cells() if PAPER.choice_of(cell))
    assert chosen == {
        "dpboost-2021": 35, "dp-ebm-gdp-2021": 35, "dp-ebm-classic-2021": 35,
        "linear": 1, "dp-linear": 5, "lightgbm": 1, "ebm": 1,
    }  # fmt: skip
    wines = {
        c.dataset for c in PAPER.cells() if PAPER.choice_of(c) and c.method in ("linear", "ebm")
    }
    assert wines == {"wine-white"}
