"""Debian's Chromium, driven by Playwright; it reaches nothing but loopback."""

import shutil
from contextlib import contextmanager

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]


@contextmanager
def chromium(*names):
    """A browser to which these names, and no others, are loopback."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "Chromium is missing: run `make test`, which installs Debian's"
    rules = [*(f"MAP {name} 127.0.0.1" for name in names), "MAP * ~NOTFOUND", "EXCLUDE 127.0.0.1"]
    arguments = [*ARGUMENTS, f"--host-resolver-rules={', '.join(rules)}"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
