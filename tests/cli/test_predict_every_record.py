"""`dprepro predict` says something of every record of a file, in order, beside what it keeps."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dprepro.additive.file import load_model, save_model
from dprepro.data.cleaning import public_domain
from dprepro.data.dataset import load_by
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from tests.commands import dprepro
from tests.data.written import CATEGORIES, LABELS, Written, read_again, written_line

NAMES = ["number", "city", "note", "who", "target"]
NOTES = ["", " blank ", 'a "quote"', "a,b;c\td", "line\nbreak", "line\r\nbreak", "é\xa0", "# none",
         "1,Bonn,x,y,yes\n"]  # fmt: skip


def table(
    separator: str, encoding: str, line_end: str, quoting: Any, comment: str | None
) -> Written:
    rows = [
        [
            f" {k / 4}".replace(".", ",") if k % 7 else "n/a",
            CATEGORIES[k % 6],
            NOTES[k % len(NOTES)],
            f"w{k}",
            LABELS[k % 5 == 0],
        ]
        for k in range(100)
    ]
    lines = [written_line(row, separator, quoting, line_end) for row in [NAMES, *rows]]
    between = f'{comment} "not closed{line_end}' if comment else line_end
    content = between.join(lines).removesuffix(line_end).encode(encoding)
    settings = {"separator": separator, "decimal": ",", "encoding": encoding, "comment": comment}
    by_key = dict(zip(NAMES, NAMES, strict=True))
    return Written(by_key, NAMES, "".join(lines), content, settings, "binary", False)


@pytest.mark.parametrize(
    ("separator", "encoding", "line_end", "quoting", "comment"),
    [
        (";", "utf-8", "\n", csv.QUOTE_MINIMAL, "#!"), (",", "utf-16", "\r\n", csv.QUOTE_ALL, None),
        ("\t", "cp1252", "\r", csv.QUOTE_MINIMAL, "%"),
        ("|", "utf-8-sig", "\n", csv.QUOTE_ALL, "%"),
        (" ", "latin-1", "\r\n", csv.QUOTE_MINIMAL, None),
    ],
)  # fmt: skip
def test_every_record_gets_its_own_prediction(
    tmp_path: Path, separator: str, encoding: str, line_end: str, quoting: Any, comment: str | None
) -> None:
    made = table(separator, encoding, line_end, quoting, comment)
    card = made.card(made.write(tmp_path))
    fields = card.model_dump(mode="json", exclude_defaults=True, exclude={"sources"})
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(fields, sort_keys=False))
    data = load_by(card, online=False)
    model = DPEBMClassifier(50, domain=public_domain(card), n_epochs=8, random_state=1)
    save_model(model.fit(data.X, data.y), tmp_path / "m.json")
    keep = [word for name in NAMES for word in ("--keep", name)]
    out = tmp_path / "out.csv"
    dprepro("predict", tmp_path / "m.json", tmp_path / "t.csv", "-o", out,
            "--card", tmp_path / "t.yaml", *keep)  # fmt: skip
    header, *rows = read_again(out.read_bytes().decode())
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert [{name: row[name] for name in NAMES} for row in found] == made.records
    wanted = load_model(tmp_path / "m.json").predict_proba(data.X)[:, 1]
    np.testing.assert_array_equal([float(row["probability"]) for row in found], wanted)
    assert len(set(wanted)) > 3
