"""Documentation that lags behind the code is worse than none: what can be compared is compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from consumer.settings_source import in_force, load

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_setting_is_described_with_its_default() -> None:
    rows = {}
    for line in (ROOT / "docs" / "settings.md").read_text(encoding="utf-8").splitlines():
        match = re.match(r"\| `([a-z0-9_.]+)` \| (.+?) \| (.*) \|$", line)
        if match:
            rows[match[1]] = match[2].strip("`").replace("\\|", "|")
    shown = {
        key: "(none)" if value in ('""', "null") else value.replace("\n", " ")
        for key, value, _ in in_force(load(None, {}))
    }
    wrong = {key: value for key, value in shown.items() if rows.get(key) != value}
    assert wrong == {}, f"rows that docs/settings.md needs: {[f'| `{k}` | `{v}` | ... |' for k, v in wrong.items()]}"
    assert rows.keys() - shown.keys() == set(), "docs/settings.md has rows of settings that are gone"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for text, target in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), f"[{text}]({target})"


def test_every_page_is_reached_from_the_readme() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        for target in re.findall(r"\]\(([^)\s#]+\.md)[^)]*\)", page.read_text(encoding="utf-8")):
            ahead.append((page.parent / target).resolve())
    assert {str(page.relative_to(ROOT)) for page in PAGES if page not in reached} == set()


def test_every_bench_is_named_with_its_command() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    benches = [
        file.stem for file in sorted((ROOT / "tests" / "bench").glob("*.py")) if "__main__" in file.read_text("utf-8")
    ]
    assert benches
    assert [name for name in benches if f"python -m tests.bench.{name}" not in page] == []
