"""What axe-core finds against WCAG 2.2, levels A and AA, in the page that a browser shows."""

from __future__ import annotations

from selenium_axe_python import Axe

from tests.report.browsing import show

GUIDELINES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# The dark scheme has other colours, and nothing else; they are the same at all widths.
RULES = {"light": GUIDELINES, "dark": ["color-contrast", "link-in-text-block"]}
WINDOWS = ((1400, "light"), (390, "light"), (1400, "dark"))

# A gradient hides from axe-core what lies behind a text.
PLAIN = """
const style = document.createElement("style");
style.textContent = ".scroll { background: none !important }";
document.head.append(style);
"""


def violations(browser, windows=WINDOWS):
    """Return each rule that is broken in a window, with the first element that breaks it.

    Windows have a width in pixels and a scheme.
    """
    found = []
    browser.execute_script(PLAIN)
    axe = Axe(browser)
    axe.inject()
    for width, scheme in windows:
        show(browser, width, scheme=scheme)
        results = axe.run(options={"runOnly": RULES[scheme], "resultTypes": ["violations"]})
        assert results["passes"], "no rule was tried"
        for broken in results["violations"]:
            first = broken["nodes"][0]
            why = " ".join(first["failureSummary"].split())
            found.append((width, scheme, broken["id"], first["html"][:200], why))
    return found
