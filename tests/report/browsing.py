"""What tests of pages ask of a browser."""

from __future__ import annotations

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait


def show(browser, width=1280, height=900, scheme="light", media=""):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def visible(page, selector):
    return [e for e in page.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]


def errors(page):
    return [entry["message"] for entry in page.get_log("browser")]


def opened(browser, address):
    """Open a page and wait until its script has run."""
    browser.get(address)
    WebDriverWait(browser, 10).until(
        lambda found: found.execute_script(
            "return document.documentElement.classList.contains('ready')"
        )
    )
    return browser


def column(page, sheet, number):
    """Return the texts of a column's visible fields."""
    script = """
    const rows = [...document.querySelectorAll(`#${arguments[0]} tbody tr:not(.detail)`)];
    return rows.filter((row) => row.checkVisibility())
      .map((row) => row.cells[arguments[1]].textContent.trim());
    """
    return page.execute_script(script, sheet, number)


def choose(page, name, value):
    Select(page.find_element(By.NAME, name)).select_by_visible_text(value)
