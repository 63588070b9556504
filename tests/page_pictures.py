"""Pictures of the three pages of a running monitor, in both themes; those of the README come from the demo.

groundwatch demo --for 4m &
python -m tests.page_pictures http://localhost:9110 docs/images
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

from PIL import Image

from tests.integration.browser import running_browser

THEMES = ("light", "dark")
WIDTH, HEIGHT = 900, 1000
PAGES = {
    "overview": "/",
    "cases": "/cases?flag=faithfulness_low",
    "case": "/cases?verdict=contradicted&segment=lang%3Den",
}
"""What is shown; of the last one, its first case, with the evidence of its wrong statement."""


def take(browser: Any, address: str, folder: Path, theme: str) -> list[Path]:
    """The files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme, reduced_motion="reduce"
    )
    page = context.new_page()
    taken: list[Path] = []
    for name, path in PAGES.items():
        page.goto(f"{address}{path}")
        if name == "case":
            page.locator("ol.cases h3 a").first.click()
            page.locator("a.statement.contradicted").first.click()
            page.locator("mark.lit").first.wait_for()
            page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        file = folder / f"{name}-{theme}.png"
        file.write_bytes(smaller(page.screenshot()))
        taken.append(file)
    context.close()
    return taken


def smaller(picture: bytes) -> bytes:
    """The same with 128 colours, which is enough for text."""
    packed = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128).save(packed, "PNG", optimize=True)
    return packed.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with running_browser() as browser:
        for theme in THEMES:
            for file in take(browser, options.address, options.folder, theme):
                print(file)


if __name__ == "__main__":
    main()
