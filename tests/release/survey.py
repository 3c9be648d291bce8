"""A survey as an institute publishes it: 60 columns, in the way of a German spreadsheet.

Semicolons, decimal commas with points for thousands, Windows-1252, -99 for a missing answer, 40
items with the same answers, days, numbers of cases; and the codebook that comes with it.
"""

from __future__ import annotations

import random
from pathlib import Path

ITEMS, OWNED = 40, 10

CODEBOOK = (Path(__file__).parents[2] / "docs" / "examples" / "survey-codebook.csv").read_text(
    "utf-8"
)


def names() -> list[str]:
    """Return the names of the columns."""
    return [
        "case_id", "interview", "sex", "age", "income", "weight", "born", "region", "work",
        *(f"q{k}" for k in range(1, ITEMS + 1)), *(f"has_{k}" for k in range(1, OWNED + 1)),
        "smoker",
    ]  # fmt: skip


def write_survey(folder: Path, rows: int = 200) -> tuple[Path, Path]:
    """Write the file and its codebook into a folder, and return their paths."""
    draw = random.Random(7)

    def rare(text: str) -> str:
        return "-99" if draw.random() < 0.05 else text

    lines = [";".join(names())]
    for row in range(rows):
        euros = draw.randrange(900, 9000)
        values = [
            f"{3 * row + 10017}",
            f"{draw.randrange(1, 29):02}.{draw.randrange(1, 13):02}.{draw.choice((2023, 2024))}",
            draw.choice("12"),
            rare(str(draw.randrange(18, 95))),
            rare(f"{euros // 1000}.{euros % 1000:03},50" if euros > 999 else f"{euros},50"),
            rare(f"{draw.uniform(45, 120):.1f}".replace(".", ",")),
            rare(str(draw.randrange(1930, 2006))),
            draw.choice(("Wien", "Kärnten", "Niederösterreich")),
            draw.choice("11112289"),
            *(rare(draw.choice("12345")) for _ in range(ITEMS)),
            *(rare(draw.choice(("ja", "nein"))) for _ in range(OWNED)),
            draw.choice(("ja", "nein")),
        ]
        lines.append(";".join(values))
    data, codebook = folder / "survey.csv", folder / "codebook.csv"
    data.write_bytes("\r\n".join([*lines, ""]).encode("cp1252"))
    codebook.write_bytes(CODEBOOK.encode("cp1252"))
    return data, codebook
