from pathlib import Path

from typer.testing import CliRunner

from dprepro.cli import app
from tests.release.test_explaining import CONFIG


def test_filters_writes_the_pictures_it_names(tmp_path: Path) -> None:
    config = tmp_path / "explained.yaml"
    config.write_text(CONFIG)
    arguments = [
        "plot", "filters", str(config), "--method", "llm", "--row", "3", "--name", "maps",
        "--output", str(tmp_path / "out"), "--format", "png",
    ]  # fmt: skip
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    path = tmp_path / "out" / "maps.png"
    assert result.output.split() == [str(path)]
    assert path.read_bytes().startswith(b"\x89PNG")
