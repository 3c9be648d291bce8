"""What tests of pages ask of a browser."""

from __future__ import annotations

from selenium.webdriver.common.by import By


def show(browser, width=1280, height=900, scheme="light", media=""):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def visible(page, selector):
    return [e for e in page.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]


def errors(page):
    return [entry["message"] for entry in page.get_log("browser")]
