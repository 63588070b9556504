"""The pages in a real browser, over cases that a real pipeline made: the way of whoever is on call, by mouse and by
keyboard, with and without script, at 360 pixels, in both themes, and against hostile text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from consumer.case_filter import case_key
from consumer.embedded import embedded_redis
from tests.case_files import case_file
from tests.integration.browser import running_browser
from tests.integration.pages_harness import Site, event, scored, serving, settings_of
from tests.page_pictures import THEMES, take

pytestmark = pytest.mark.full

WIDE, NARROW = 1100, 360
PAGES = (
    "/",
    "/cases?flag=faithfulness_low",
    "/cases?group=statement",
    "/cases/e3",
    "/cases/e60",
    "/cases?from=nonsense",
    "/login",
)
MARKUP = (
    "<script>document.title='owned'</script><img src='http://evil.example/i.png' onerror='alert(1)'>"
    "<iframe srcdoc='<script>parent.alert(2)</script>'></iframe><svg onload=alert(3)></svg>"
    "![p](http://evil.example/p.png) [click](javascript:alert(4)) <style>body{display:none}</style>"
)
RIGHT_TO_LEFT = "يحق للموظف 26 يومًا من الإجازة السنوية."
EMOJI = "👩‍🚀🏖️ 28 days off 🎉"


def leave(number: int, days: int, question: str, **changes: Any) -> dict[str, Any]:
    passages = [
        {
            "id": f"leave#{number}",
            "source": "handbook.pdf",
            "text": f"Full-time staff have {20 + number} days of paid leave a year. Part-time staff have a share.",
        },
        {"id": "canteen#1", "source": "house.pdf", "text": "The canteen opens at 11:30 and closes at 14:00."},
    ]
    answer = f"You have {days} days of paid leave a year. Part-time staff have a share, {20 + number} at most."
    return event(number, answer, question=question, contexts=passages, **changes)


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("browser")
    with embedded_redis(folder / "redis.log") as url:
        settings = settings_of(kafka, url)
        with serving(settings, folder) as found:
            asked = "How many days of leave do I have?"
            wrong = [leave(n, 28, asked, labels={"app": "helpdesk", "lang": "en", "model": "m-2"}) for n in (3, 4, 6)]
            good = [leave(n, 20 + n, f"What is my leave in grade {n}?") for n in range(30, 50)]
            shop = {"app": "shop", "lang": "zh", "model": "m-1"}
            chinese = event(60, "您每年有28天带薪年假。", question="年假有几天？", labels=shop,
                            contexts=[{"id": "假期#1", "text": "全职员工每年有26天带薪年假。"}])  # fmt: skip
            hostile = [
                event(70, f"{MARKUP} You have 99 days.", question=MARKUP, contexts=[f"{MARKUP} 26 days."]),
                event(71, f"{RIGHT_TO_LEFT} 28", question="كم يومًا؟", contexts=[RIGHT_TO_LEFT]),
                event(72, f"{EMOJI} \u202etxt.exe", question=EMOJI, contexts=["26 days off"]),
                # A lone surrogate, as a JavaScript client escapes half of an emoji.
                b'{"id":"e73","question":"half \\ud83d an emoji","contexts":["26 days \\ud83d"],'
                b'"answer":"28 days \\ud83d and more.","labels":{"app":"helpdesk","lang":"en"}}',
            ]
            scored(found, [*wrong, *good, chinese, *hostile], kept=len(wrong) + len(good) + 1 + len(hostile))
            yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as found:
        yield found


@contextmanager
def page_of(browser: Any, site: Site, width: int = WIDE, theme: str = "light", **options: Any) -> Iterator[Any]:
    """A page that fails the test where it asks anybody else for anything, opens a dialog or logs an error (but that a
    page had the status 400)."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options)
    page = context.new_page()
    page.set_default_timeout(10_000)
    wrong: list[str] = []
    own = urlsplit(site.address).netloc
    page.on("request", lambda r: wrong.append(r.url) if urlsplit(r.url).netloc != own else None)
    page.on("dialog", lambda d: (wrong.append(f"dialog {d.message}"), d.dismiss()))
    page.on("pageerror", lambda error: wrong.append(f"error {error}"))
    page.on(
        "console", lambda m: wrong.append(f"console {m.text}") if m.type == "error" and "400" not in m.text else None
    )
    try:
        yield page
        assert wrong == []
    finally:
        context.close()


def test_from_the_alert_to_the_wrong_statement_and_its_label(site: Site, browser: Any) -> None:
    """The address is the one in the alert."""
    with page_of(browser, site) as page:
        page.goto(f"{site.address}/cases?segment=app%3Dhelpdesk%2Clang%3Den&flag=faithfulness_low&from=1h")
        page.get_by_role("link", name="by wrong statement").click()
        page.get_by_role("link", name="3 answers say this").click()
        page.get_by_role("link", name="How many days of leave do I have?").first.click()
        wrong = page.locator("a.statement.contradicted")
        assert "You have 28 days" in wrong.inner_text()
        assert page.locator("mark.lit").count() == 0
        wrong.click()
        lit = page.locator("mark.lit")
        lit.first.wait_for()
        assert "days of paid leave a year" in lit.first.inner_text()
        assert lit.first.is_visible()
        assert wrong.get_attribute("aria-current") == "true"
        page.get_by_label("Your name").fill("Wei")
        page.get_by_label("Note").fill("26, not 28")
        page.get_by_role("button", name="Bad").click()
        page.wait_for_url("**#label")
        assert "Wei says bad" in page.locator("#label ~ p").first.inner_text()
        page.goto(f"{site.address}/")
        page.get_by_role("link", name="1 bad").click()
        assert page.locator("ol.cases > li").count() == 1
        assert "Wei says bad" in page.locator("ol.cases").inner_text()


def test_a_link_to_evidence_opens_at_it(site: Site, browser: Any) -> None:
    with page_of(browser, site) as page:
        page.goto(f"{site.address}/cases/e4#evidence-1-0")
        page.locator("mark.lit").first.wait_for()
        page.wait_for_function("document.activeElement.id === 'evidence-1-0'")


def test_it_works_without_script(site: Site, browser: Any) -> None:
    with page_of(browser, site, java_script_enabled=False) as page:
        page.goto(f"{site.address}/cases/e4")
        page.locator("a.statement.contradicted").click()
        assert page.url.endswith("#evidence-1-0")
        chosen = page.locator("#evidence-1-0 ~ mark").first
        assert "days of paid leave" in chosen.inner_text()
        lit = "e => getComputedStyle(e).borderBottomColor"
        assert chosen.evaluate(lit) != "rgba(0, 0, 0, 0)"
        assert not page.locator("button.copy").is_visible()


def test_by_keyboard_alone(site: Site, browser: Any) -> None:
    with page_of(browser, site) as page:
        page.goto(f"{site.address}/cases?flag=faithfulness_low")
        page.keyboard.press("Tab")
        assert focused(page) == "Skip to the content"
        page.keyboard.press("Enter")
        tab_to(page, "How many days of leave do I have?")
        page.keyboard.press("Enter")
        page.wait_for_url("**/cases/*")
        tab_to(page, "You have 28 days")
        page.keyboard.press("Enter")
        page.locator("mark.lit").first.wait_for()
        # From the evidence on, the next stop is what follows it, not the top of the page.
        tab_to(page, "Your name", most=12)
        page.keyboard.type("Anna")
        page.keyboard.press("Tab")
        page.keyboard.type("by keyboard")
        tab_to(page, "Good", most=3)
        page.keyboard.press("Enter")
        page.wait_for_url("**#label")
        assert "Anna says good" in page.locator("#label ~ p").first.inner_text()


def focused(page: Any) -> str:
    return str(
        page.evaluate(
            "(e => e.labels && e.labels.length ? e.labels[0].innerText : e.innerText || e.id)(document.activeElement)"
        )
    )


def tab_to(page: Any, name: str, most: int = 60) -> None:
    for _ in range(most):
        page.keyboard.press("Tab")
        if name in focused(page):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", "the focus cannot be seen"
            return
    raise AssertionError(f"{name!r} is not reached by {most} tabs")


# field case 71 d
def test_hostile_text_is_inert_and_can_be_read(site: Site, browser: Any) -> None:
    now = time.time()
    line = "word <b>bold</b> " * 65_000
    huge = case_file(90, now, answer=line, statements=(), question="A line of a megabyte")
    site.cases.put([replace(huge, contexts=huge.contexts * 30)], now)
    with page_of(browser, site, NARROW) as page:
        lists = ("/cases", "/cases?group=question", "/cases?group=statement")
        for path in (*lists, *(f"/cases/e{n}" for n in range(70, 74))):
            page.goto(f"{site.address}{path}")
            assert page.title().endswith("· Groundwatch")
            assert page.locator("main img, main iframe, main script, main style, main svg[onload]").count() == 0
            assert no_wider_than_the_screen(page)
        page.goto(f"{site.address}/cases/e70")
        assert "<script>document.title='owned'</script>" in page.locator(".answer").inner_text()
        page.goto(f"{site.address}/cases/e71")
        assert RIGHT_TO_LEFT in page.locator(".answer").inner_text()
        assert page.evaluate("getComputedStyle(document.querySelector('.answer')).direction") == "rtl"
        page.goto(f"{site.address}/cases/e72")
        assert "👩‍🚀🏖️" in page.locator(".answer").inner_text()
        assert page.locator(".answer .code").inner_text() == "U+202E"
        page.goto(f"{site.address}/cases/e73")
        assert "28 days" in page.locator(".answer").inner_text()
        page.goto(f"{site.address}/cases/{case_key(huge)}", timeout=60_000)
        assert len(page.locator(".answer").inner_text()) > 1_000_000
        assert no_wider_than_the_screen(page)


def no_wider_than_the_screen(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_serious_fault_of_accessibility(site: Site, browser: Any, theme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core (axe-playwright-python)")
    checker = axe.Axe()
    with page_of(browser, site, width, theme) as page:
        for path in PAGES:
            response = page.goto(f"{site.address}{path}")
            assert response.status in (200, 400)
            faults = [
                f"{found['id']} ({found['impact']}): {[node['target'] for node in found['nodes']][:3]}"
                for found in checker.run(page).response["violations"]
                if found["impact"] in ("serious", "critical")
            ]
            assert faults == [], f"{path} {theme} {width}"
            assert no_wider_than_the_screen(page)


def test_no_statement_is_told_by_colour_alone(site: Site, browser: Any) -> None:
    """Without any colour the verdicts are told apart by sign, by word for those who hear it, and by the line below."""
    with page_of(browser, site) as page:
        page.goto(f"{site.address}/cases/e4")
        told = {}
        for statement in page.locator("a.statement").all():
            sign = statement.locator(".sign").text_content()
            line = statement.evaluate("e => getComputedStyle(e).textDecorationStyle")
            told[statement.get_attribute("class")] = (sign[0], sign[1:].split()[1], line)
        assert told == {
            "statement contradicted": ("✗", "contradicted:", "wavy"),
            "statement supported": ("✓", "supported:", "solid"),
        }


@pytest.mark.parametrize("theme", THEMES)
def test_pictures_can_be_taken(site: Site, browser: Any, theme: str, tmp_path: Path) -> None:
    assert [file.stat().st_size > 10_000 for file in take(browser, site.address, tmp_path, theme)] == [True] * 3
