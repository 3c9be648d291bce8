import pytest

from dprepro.cli.options import warn


@pytest.mark.parametrize("is_private", [True, False])
def test_only_private_rows_are_warned_of_and_not_among_the_results(
    is_private: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    warn(is_private, "the picture shows held-out rows")
    said = capsys.readouterr()
    assert said.out == ""
    assert ("PRIVATE DATA: the picture shows held-out rows" in said.err) == is_private
