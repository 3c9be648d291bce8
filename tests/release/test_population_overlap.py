"""The book knows rows again whose order, format, columns, names or number have changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprepro.data.dataset import Dataset
from dprepro.data.register import register_path
from dprepro.release.budget_book import book_path, read_book
from dprepro.release.population_overlap import Rows, holds_most_of, siphash
from dprepro.release.statement import Statement
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import rows_of, write_table

LIMIT = "budget_limit: {epsilon: 1.2, delta: 1e-5}\n"
ROWS = 300


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def release(card: Path, *options: str) -> str:
    place = card.with_name("out")
    given = ("--epsilon", "1", "--delta", "1e-5", "--yes", "-o", place, *options)
    return " ".join(dprepro("release", card, "--method", "dp-ebm-sound", *given).split())


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """Return the card of a table that was released, with nearly all of its limit spent."""
    config = write_table(tmp_path / "first", "binary", rows_of("binary", ROWS), LIMIT)
    card = config.with_name("patients.yaml")
    release(card)
    return card


def copied(
    card: Path, change: Callable[[pd.DataFrame], pd.DataFrame], parquet: bool = False
) -> Path:
    """Write the rows, changed, and a card without a limit, to a new place; return the card."""
    table = change(pd.read_csv(card.with_name("patients.csv")))
    folder = card.parents[1] / "other"
    folder.mkdir()
    name = "clients.parquet" if parquet else "clients.csv"
    if parquet:
        table.to_parquet(folder / name, index=False)
    else:
        table.to_csv(folder / name, index=False)
    lines = (
        card.read_text(encoding="utf-8")
        .replace(LIMIT, "")
        .replace("patients.csv", name)
        .splitlines()
    )
    dropped = {"age", "dose", "ward"} - set(table.columns)
    kept = [line for line in lines if line.strip().partition(":")[0] not in dropped]
    new = folder / "clients.yaml"
    new.write_text("\n".join(kept).replace("name: patients", "name: clients") + "\n")
    return new


CHANGES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], bool]] = {
    "reversed": (lambda table: table[::-1], False),
    "a row less": (lambda table: table.drop(index=7), False),
    "parquet, a column less": (lambda table: table.drop(columns="ward"), True),
    "half of the rows, twice": (lambda table: pd.concat([table[::2]] * 2), False),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_altered_copy_at_a_new_place_gets_no_new_budget(released: Path, name: str) -> None:
    card = copied(released, *CHANGES[name])
    before = book_path().read_bytes()
    with pytest.raises(DpreproError, match="beyond the budget: the card of patients") as refused:
        release(card)
    assert "are like: the release of patients (2" in str(refused.value)
    assert re.search(r"(nearly all|most) of its rows, by [34] columns", str(refused.value))
    assert book_path().read_bytes() == before
    assert "patients" in dprepro("budget", card)


def test_other_people_have_a_budget_of_their_own(released: Path) -> None:
    folder = released.parents[1] / "other"
    rows = rows_of("binary", 2 * ROWS)[ROWS:]
    card = write_table(folder, "binary", rows, LIMIT).with_name("patients.yaml")
    assert "0 release(s) of these rows" in release(card)
    assert [e.like for e in read_book().entries] == [{}, {}]


def test_alike_rows_that_are_said_to_be_others_are_recorded_as_such(released: Path) -> None:
    card = copied(released, *CHANGES["reversed"])
    said = release(card, "--other-people")
    assert (
        "Others: said to be other people, so not counted with them: the release of patients" in said
    )
    first, second = read_book().entries
    assert (list(second.other_people), second.like) == ([first.name], {})
    text = (card.parent / "out" / "statement.json").read_text(encoding="utf-8")
    publisher = Statement.model_validate_json(text).publisher
    assert (publisher.earlier_releases, publisher.other_people) == (0, 1)
    page = (card.parent / "out" / "statement.md").read_text(encoding="utf-8")
    assert "the publisher says that they are of other people" in " ".join(page.split())
    listed = " ".join(dprepro("budget").split())
    assert "other people, as the owner of the data says" in listed
    again = release(card, "-o", str(card.parent / "again"))  # of the same rows it was said
    assert "1 release(s) of these rows" in again
    assert len(read_book().accounts()) == 2


def test_a_release_says_which_one_it_is_like_and_counts_both(released: Path) -> None:
    released.write_text(released.read_text(encoding="utf-8").replace(LIMIT, ""))
    card = copied(released, *CHANGES["reversed"])
    book = json.loads(book_path().read_text(encoding="utf-8"))
    book["entries"][0]["limit"] = None
    book_path().write_text(json.dumps(book))
    said = release(card)
    assert "Before: 1 release(s) of these rows" in said
    assert "Alike: the release of patients (2" in said
    assert "nearly all of its rows, by 4 columns. They are counted together" in said
    (account,) = read_book().accounts()
    assert [entry.dataset for entry in account] == ["patients", "clients"]


def test_a_book_without_sketches_is_read(released: Path) -> None:
    book = json.loads(book_path().read_text(encoding="utf-8"))
    for key in ("sketch", "like", "other_people"):
        del book["entries"][0][key]
    book_path().write_text(json.dumps({**book, "version": 2}))
    assert "2 release(s)" not in release(copied(released, *CHANGES["reversed"]))
    assert json.loads(book_path().read_text(encoding="utf-8"))["version"] == 4
    assert [e.sketch is None for e in read_book().entries] == [True, False]


def test_a_sketch_stays_private_and_needs_the_key(released: Path) -> None:
    (entry,) = read_book().entries
    assert entry.sketch is not None
    assert book_path().stat().st_mode & 0o077 == 0
    out = released.with_name("out")
    assert all(
        entry.sketch.cells[:40] not in path.read_text(encoding="utf-8") for path in out.iterdir()
    )
    dataset = small_table(100)
    sketch = Rows(dataset).sketch()
    assert Rows(dataset).likeness_to(sketch) is not None
    register_path().unlink()
    assert Rows(dataset).likeness_to(sketch) is None


def small_table(n: int, seed: int = 0, **columns: np.ndarray) -> Dataset:
    chance = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{k}": chance.normal(size=n) for k in range(4)})
    X["c"] = pd.Categorical(chance.choice(["a", "b"], n))
    return Dataset("table", X.assign(**columns), chance.integers(2, size=n), "binary", None, "", "")


def test_what_cannot_be_told_apart_counts_together() -> None:
    def few(seed: int) -> Dataset:
        X = pd.DataFrame({"a": np.random.default_rng(seed).integers(2, size=2000)})
        X = X.assign(b=1 - X["a"] * (np.arange(2000) % 3), c=np.arange(2000) % 4)
        return Dataset("table", X.astype(float), (np.arange(2000) % 2), "binary", None, "", "")

    likeness = Rows(few(1)).likeness_to(Rows(few(2)).sketch())
    assert "cannot tell" in str(likeness)


@pytest.mark.parametrize("columns", [{}, {"new": np.arange(1000.0)}])
def test_renamed_and_added_columns_and_other_types_do_not_matter(columns: dict) -> None:
    dataset = small_table(1000)
    sketch = Rows(dataset).sketch()
    X = dataset.X.rename(columns={"x0": "height", "c": "d"}).assign(**columns)
    X["x1"] = X["x1"].astype(np.float32)
    X["x2"] = pd.Categorical(X["x2"].map(str))
    order = np.random.default_rng(1).permutation(1000)
    copy = Dataset(
        "t", X.iloc[order].reset_index(drop=True), dataset.y[order], "binary", None, "", ""
    )
    found = Rows(copy).likeness_to(sketch)
    assert found is not None
    assert found.share > 0.9
    assert Rows(small_table(1000, seed=5)).likeness_to(sketch) is None


def test_the_digests_are_siphash_as_its_authors_print_it() -> None:
    message = np.array([int.from_bytes(bytes(range(8)), "little")], np.uint64)
    assert hex(siphash(message, bytes(range(16)))[0]) == "0x93f5f5799a932462"


# --- rows that are said to be public --------------------------------------------------------------


def table(seed: int, n: int = 200) -> Dataset:
    """Return rows of numbers and categories, in which hardly two rows are equal."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(50, 10, n), "dose": rng.uniform(size=n)})
    X["ward"] = pd.Categorical(rng.choice(["a", "b"], n), ["a", "b"])
    X.loc[:9, "dose"] = np.nan
    return Dataset("drawn", X, rng.integers(2, size=n), "binary", None, "drawn", "")


def part(dataset: Dataset, order: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
    return dataset.X.iloc[order].reset_index(drop=True), dataset.y[order]


def joined(*parts: tuple[pd.DataFrame, np.ndarray]) -> tuple[pd.DataFrame, np.ndarray]:
    tables, targets = zip(*parts, strict=True)
    return pd.concat(tables, ignore_index=True), np.concatenate(targets)


def test_a_shuffled_copy_and_a_part_of_the_table_are_found() -> None:
    private, other = table(1), table(2)
    order = np.random.default_rng(3).permutation(200)
    X, y = part(private, order)
    assert holds_most_of(private, X, y)
    assert holds_most_of(private, X[["ward", "dose", "age"]], y)
    assert holds_most_of(private, *part(private, order[:50]))
    assert holds_most_of(private, X.assign(age=X["age"].astype(np.float32).astype(float)), y)
    assert not holds_most_of(private, other.X, other.y)
    assert not holds_most_of(private, X, 1 - y)
    assert not holds_most_of(private, X.assign(age=X["dose"], dose=X["age"]), y)


def test_half_of_the_rows_are_most_of_them_and_fewer_are_not() -> None:
    private, other, places = table(1), table(2), np.arange(200)
    half = joined(part(private, places[:30]), part(other, places[:30]))
    fewer = joined(part(private, places[:29]), part(other, places[:30]))
    assert holds_most_of(private, *half)
    assert not holds_most_of(private, *fewer)


@pytest.mark.parametrize("theirs", [0, 29, 30, 60])
def test_a_row_of_somebody_without_a_public_row_never_decides(theirs: int) -> None:
    """Whether a release exists is the same without any such row, and with more of them."""
    private, other, places = table(1), table(2), np.arange(200)
    public = joined(part(private, places[:theirs]), part(other, places[: 60 - theirs]))
    found = holds_most_of(private, *public)
    assert found is (theirs >= 30)
    more = joined((private.X, private.y), part(table(4), places))
    for X, y in (part(private, places[:theirs]), more):
        # Nothing but the rows that are public, too; and with 200 strangers.
        neighbour = Dataset("drawn", X, y, "binary", None, "drawn", "")
        assert holds_most_of(neighbour, *public) is found


def test_rows_with_other_columns_are_not_compared() -> None:
    private = table(1)
    with pytest.raises(ValueError, match=r"the columns are \['age', 'ward'\]"):
        holds_most_of(private, private.X[["age", "ward"]], private.y)
