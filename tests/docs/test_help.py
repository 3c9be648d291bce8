"""The examples of `dprepro COMMAND --help` run in a fresh clone, in the order of the commands."""

import pytest

from tests.docs.rules import ELSEWHERE
from tests.docs.test_rules import help_examples

pytestmark = [pytest.mark.docs, pytest.mark.timeout(600)]


@pytest.mark.parametrize("example", [one for one in help_examples() if one not in ELSEWHERE])
def test_an_example_runs(example, session_of):
    session_of("--help").run(example)
