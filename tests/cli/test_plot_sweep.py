from pathlib import Path

from typer.testing import CliRunner

from dprepro.cli import app
from tests.report.journals import records, write


def test_a_sweep_is_drawn_for_each_dataset(tmp_path: Path) -> None:
    lines = [
        record
        for maps in (1, 3)
        for record in records(
            [0.8, 0.9], label=f"llm n_maps={maps}", metric="accuracy", dataset="mnist",
            method="llm", params={"n_maps": maps},
        )
    ]  # fmt: skip
    write(tmp_path / "results", "one", lines)
    arguments = [
        "plot", "sweep", "n_maps", "--results", str(tmp_path / "results"),
        "--output", str(tmp_path / "out"), "--format", "svg",
    ]  # fmt: skip
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.split() == [str(tmp_path / "out" / "sweep-n_maps-mnist.svg")]
    assert (tmp_path / "out" / "sweep-n_maps-mnist.svg").is_file()
