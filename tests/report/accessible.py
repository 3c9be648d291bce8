"""What axe-core finds against WCAG 2.2, levels A and AA, in the page that a browser shows."""

from __future__ import annotations

from selenium_axe_python import Axe

from tests.report.browsing import show

GUIDELINES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOURS = ["cat.color"]
WIDTHS = (1400, 390)

# A gradient hides from axe-core what lies behind a text.
PLAIN = """
const style = document.createElement("style");
style.textContent = ".scroll { background: none !important }";
document.head.append(style);
"""


def violations(browser):
    """Return each rule that is broken at a width, with the first element that breaks it.

    The dark scheme has other colours and nothing else, so there colours alone are looked at.
    """
    found = []
    browser.execute_script(PLAIN)
    axe = Axe(browser)
    axe.inject()
    for width in WIDTHS:
        for scheme, rules in (("light", GUIDELINES), ("dark", COLOURS)):
            show(browser, width, scheme=scheme)
            results = axe.run(options={"runOnly": rules, "resultTypes": ["violations"]})
            assert results["passes"], "no rule was tried"
            for broken in results["violations"]:
                first = broken["nodes"][0]
                why = " ".join(first["failureSummary"].split())
                found.append((width, scheme, broken["id"], first["html"][:200], why))
    return found
