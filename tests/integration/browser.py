"""A real browser for the tests of the pages: the Chromium of this machine; none is ever downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ABSENT = "no Chromium on the PATH (Debian: chromium; or GROUNDWATCH_TEST_CHROMIUM=PROGRAM)"


def chromium() -> str | None:
    """The program, if there is one."""
    given = os.environ.get("GROUNDWATCH_TEST_CHROMIUM")
    return given or next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def running_browser() -> Iterator[Any]:
    """A browser, ended afterwards; the test is skipped where there is none."""
    program = chromium()
    if program is None:
        pytest.skip(ABSENT)
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright (pip: playwright)")
    with playwright.sync_playwright() as driver:
        # In a container, as root, Chromium's own sandbox does not start.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
