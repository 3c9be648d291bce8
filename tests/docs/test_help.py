"""The examples of `dprepro COMMAND --help` are run in a fresh clone, in the order of the commands."""

import pytest

from tests.docs.session import Session
from tests.docs.test_rules import help_examples

pytestmark = [
    pytest.mark.docs,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("help"),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory, data_dir):
    opened = Session(tmp_path_factory.mktemp("help"), "--help", data_dir)
    opened.run(". .venv/bin/activate")
    # `edit` and `score` take the model that `fit` writes.
    opened.run("dprepro fit adult --method dp-ebm-gdp --epsilon 1 --output model.json")
    yield opened
    opened.close()


@pytest.mark.parametrize("example", help_examples())
def test_an_example_runs(example, session):
    session.run(example)
