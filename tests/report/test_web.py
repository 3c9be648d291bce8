"""What every page has in common."""

import base64
import hashlib
import re
from importlib import resources

from dprepro.report.model_page import SCRIPTS, model_page
from tests.report.model_page.models import model


def test_the_policy_lets_the_one_script_of_the_page_run():
    page = model_page(model(), "a model")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert f"script-src &#39;sha256-{digest}&#39;" in policy
    assert policy.startswith("default-src &#39;none&#39;;")
    assert "unsafe-eval" not in policy


def test_styles_are_those_of_all_pages_then_its_own():
    page = model_page(model(), "a model")
    styles = page[page.index("<style>") : page.index("</style>")]
    base = (
        resources.files("dprepro.report.web")
        .joinpath("template", "base.css")
        .read_text(encoding="utf-8")
    )
    assert styles.startswith("<style>" + base)
    assert ".cards" in styles[len(base) :]


def test_every_script_of_the_folder_is_in_the_page():
    folder = resources.files("dprepro.report.model_page").joinpath("template")
    assert {entry.name for entry in folder.iterdir() if entry.name.endswith(".js")} == {*SCRIPTS}
