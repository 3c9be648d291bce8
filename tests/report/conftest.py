"""A real browser for the tests of pages: Debian's chromium, driven by its own chromedriver."""

from __future__ import annotations

import os
import shutil

import pytest

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium; without it tests skip, but fail in CI."""
    from selenium import webdriver

    programs = shutil.which("chromium"), shutil.which("chromedriver")
    if None in programs:
        message = "chromium and chromedriver are not installed (Debian: chromium-driver)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs[1]))
    yield driver
    driver.quit()
