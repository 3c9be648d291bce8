"""A release of a method of one's own: what is refused, and whose word its statement says it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dprepro.methods import registry
from dprepro.release.budget_book import read_book
from dprepro.release.statement import Statement
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import rows_of, write_table

SOURCE = """
import numpy as np

from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.entry import Guarantee, Method
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.guarantee_status import Noise


class Twice(DPEBMPlusClassifier):
    # Its noise is that of the class it derives from.
    pass


class Added(DPEBMPlusClassifier):
    # Draws once more, from a library, and says so or not.
    def fit(self, X, y):
        super().fit(X, y)
        total = float(np.sum(y)) + np.random.laplace(scale=1e9)
        self.ledger_.add(self.ledger_.entries[0].__class__(
            "laplace", "a total", 1.0, "L1", 1e9, 1, (1e-9, 0.0)))
        self.intercept_ += 0 * total
        return self

    planned_ledger = property()  # a fit to made-up rows says what it spends


class Kinder(Ledger):
    holds = True


class Faked(DPEBMPlusClassifier):
    def fit(self, X, y):
        super().fit(X, y)
        self.ledger_ = Kinder(self.epsilon, self.delta, "add/remove-one", self.ledger_.entries)
        return self

    planned_ledger = property()


class Seeded(DPEBMPlusClassifier):
    def __init__(self, epsilon=1.0, delta=1e-6, *, domain=None, random_state=None):
        super().__init__(epsilon, delta, domain=domain, random_state=1)


def method(name, kind):
    return Method(name, name, frozenset({"binary"}), Guarantee.APPROXIMATE, "add/remove-one", (),
                  "me", lambda s, **p: kind(s.epsilon, s.delta, domain=s.domain,
                                            random_state=s.seed),
                  takes_epsilon=True, keeps_ledger=True, noise=Noise.EXACT)


METHODS = [method(kind.__name__.lower(), kind) for kind in (Twice, Added, Faked, Seeded)]
"""


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "mine.py").write_text(SOURCE)
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path / "methods"))
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    registry.all_methods.cache_clear()
    yield write_table(tmp_path, "binary", rows_of("binary", 60)).with_name("patients.yaml")
    registry.all_methods.cache_clear()


def release(card: Path, method: str, *options: object) -> str:
    place = card.with_name("out")
    asked = ("--epsilon", 1, "--delta", "1e-5", "--yes", "-o", place, "--method", method)
    return " ".join(dprepro("release", card, *asked, *options).split())


def refused(card: Path, method: str, *options: object) -> str:
    """Return the message of a release that writes and spends nothing."""
    with pytest.raises(DpreproError) as caught:
        release(card, method, *options)
    assert not card.with_name("out").exists()
    assert not read_book().entries
    return str(caught.value)


def record(method: str, verdict: str, code: str) -> dict[str, object]:
    return {
        "subject": method, "task": "binary", "neighbours": "two tables", "adjacency": "zero-out",
        "epsilon": 1.0, "delta": 1e-6, "ledger_epsilon": 1.0, "lower_bound": 0.5, "trials": 4000,
        "confidence": 0.95, "bound": "GDP", "verdict": verdict, "gaps": [], "code": code,
    }  # fmt: skip


def write_audits(card: Path, *records: dict[str, object]) -> None:
    (card.parent / "results").mkdir(exist_ok=True)
    (card.parent / "results" / "audit.json").write_text(json.dumps(records))


def test_its_statement_says_whose_word_it_is_and_has_the_audits_of_that_code(card: Path) -> None:
    code = registry.get("twice").code
    write_audits(card, record("twice", "within", code), record("twice", "EXCEEDED", "other"))
    said = release(card, "twice")
    assert "its ledger is its author's word: a method of your own, audited" in said
    out = card.with_name("out")
    statement = Statement.model_validate_json((out / "statement.json").read_bytes())
    assert statement.privacy.is_authors_word
    assert statement.not_covered.floating_point == []
    assert "exact noise on whole numbers" in statement.registry.implementation
    assert "its own code" in statement.registry.implementation
    assert [audit.verdict for audit in statement.publisher.audits] == ["within"]
    assert f"SHA-256 {code}" in statement.not_covered.always[0]
    for name in ("statement.md", "statement.html"):
        text = " ".join((out / name).read_text(encoding="utf-8").replace("&#39;", "'").split())
        assert "The method is the publisher's own." in text
        assert "holds, by its author's word" in text
    assert "are those of the model" in dprepro("verify", out)
    shown = " ".join(dprepro("ledger", out).split())
    assert "holds, says its author. The method is one's own" in shown
    assert "an audit of this code found no violation, which is not a proof" in shown
    assert "the ledger, its author's word, says that" in " ".join(
        (out / "model.html").read_text(encoding="utf-8").replace("&#39;", "'").split()
    )


def test_a_method_of_ours_is_nobodys_word(card: Path) -> None:
    said = release(card, "dp-ebm-plus")
    assert "author" not in said
    out = card.with_name("out")
    assert "is_authors_word" not in (out / "statement.json").read_text(encoding="utf-8")
    assert "code" not in json.loads((out / "model.json").read_text(encoding="utf-8"))["ledger"]


def test_one_that_an_audit_of_its_code_refutes_is_not_released(card: Path) -> None:
    write_audits(card, record("twice", "EXCEEDED", registry.get("twice").code))
    message = refused(card, "twice")
    assert "an audit in results refutes what twice states" in message
    assert "audit it again. Nothing was spent" in message


def test_noise_of_a_library_is_released_only_where_that_is_said(card: Path) -> None:
    message = refused(card, "added")
    assert "a total: its noise, if there is any, does not come from dprepro's samplers" in message
    assert "--allow-floating-point" in message
    assert "floating-point noise, no seed" in release(card, "added", "--allow-floating-point")
    out = card.with_name("out")
    statement = Statement.model_validate_json((out / "statement.json").read_bytes())
    assert len(statement.not_covered.floating_point) == 1
    assert statement.registry.security == "noise of a library, see what is not covered"


def test_an_object_that_says_what_it_likes_is_no_ledger(card: Path) -> None:
    assert "unverified: it keeps no ledger" in refused(card, "faked")


def test_a_seed_of_its_own_is_named(card: Path) -> None:
    message = refused(card, "seeded", "--allow-floating-point")
    assert "does not hold: fixed seed: repeatable, never for release" in message
