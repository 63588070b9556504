"""The pages over the whole product, every part of it a process of its own: calibrated, sent, scored, kept, looked at
in a real browser. Nothing here is put into Redis by hand."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from consumer.embedded import embedded_redis
from consumer.event_ids import MAX_ID
from metrics.counting import EXEMPLAR_CHARACTERS
from tests.integration.browser import running_browser
from tests.integration.product_harness import Product, run, running_product, settings_for
from tests.page_pictures import THEMES
from tests.processes import wait_until

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

HOUR = 3600.0
NARROW = 360
SECTIONS: dict[str, dict[str, object]] = {
    "scoring": {"metrics": ["faithfulness"], "sketch": False},
    "judge": {"kind": "lexical"},
    "segments": {"allow": {"app": ["helpdesk", "shop"], "lang": ["en", "zh"]}},
    "cases": {"audit_share": 1.0},
    "thresholds": {"default": {"faithfulness": 0.75}},
}
LARGEST = 4_000_000
"""`decode.max_characters`, as it is by default."""


def leave(number: int, wrong: bool, **changes: Any) -> dict[str, Any]:
    """An event about the leave of a grade; a wrong answer has one wrong statement of two."""
    days = 20 + number % 9
    passage = f"Staff of grade {number} have {days} days of paid leave a year. Part-time staff have a share."
    return {
        "id": f"leave-{number}",
        "question": f"How many days of leave does grade {number} have?",
        "contexts": [{"id": f"leave#{number}", "text": passage}],
        "answer": passage.replace(f"{days} days", "50 days") if wrong else passage,
        "labels": {"app": ("helpdesk", "shop")[number % 2], "lang": "en"},
    } | changes


def traffic(now: float) -> Iterator[dict[str, Any]]:
    """Two hours ago a tenth of the answers were wrong; in this one, all of the help desk's are."""
    chance = random.Random(8)
    for n in range(160):
        yield leave(1000 + n, chance.random() < 0.1, timestamp=now - 1.5 * HOUR - n * 5)
        yield leave(2000 + n, n % 2 == 0 or chance.random() < 0.1, timestamp=now - n * 5)


@pytest.fixture(scope="module")
def product(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    with embedded_redis(folder / "redis.log") as url:
        variables = settings_for(kafka, url, SECTIONS)
        chance = random.Random(7)
        good, baseline = folder / "good.jsonl", folder / "baseline.json"
        validated = (leave(n, chance.random() < 0.1) for n in range(240))
        good.write_bytes(b"\n".join(orjson.dumps(row) for row in validated))
        run(variables, "calibrate", str(good), "--good-answer", "answer", "--out", str(baseline))
        variables |= {"GROUNDWATCH__BASELINE__FILE": str(baseline)}
        with running_product(variables, folder) as found:
            found.send(traffic(time.time()))
            kept(found, 320)
            yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as found:
        yield found


def kept(product: Product, number: int) -> None:
    wait_until(lambda: product.store.count(time.time()) == number, 300, f"{number} cases in Redis")


def sent(product: Product, *events: dict[str, Any]) -> None:
    """Sent, scored, and kept as cases."""
    before = product.store.count(time.time())
    product.send(events)
    kept(product, before + len(events))


@contextmanager
def page_of(browser: Any, width: int, theme: str = "light") -> Iterator[Any]:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    try:
        page = context.new_page()
        page.set_default_timeout(180_000)
        page.on("dialog", lambda dialog: dialog.dismiss())
        yield page
    finally:
        context.close()


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def drift_of(product: Product) -> dict[tuple[str, str], float]:
    """By segment and reference, the PSI of faithfulness in the last hour as /metrics has it."""
    return {
        (labels["app"], labels["reference"]): value
        for labels, value in product.monitor.samples().get("groundwatch_drift", [])
        if labels["metric"] == "faithfulness"
        and labels["window"] == "1h"
        and labels["statistic"] == "psi"
        and labels["app"] != "other"
    }


def test_drift_of_every_segment_is_on_the_overview(product: Product, browser: Any) -> None:
    """Against the baseline, and against the hour before: of the help desk's faithfulness, not of the shop's."""
    wanted = {(app, reference) for app in ("all", "helpdesk", "shop") for reference in ("baseline", "previous")}
    wait_until(lambda: drift_of(product).keys() >= wanted, 60, "drift of all segments on /metrics")
    with page_of(browser, 1100) as page:
        page.goto(f"{product.address}/")
        parts = {part.locator("h3").inner_text(): plain(part.inner_text()) for part in page.locator(".part").all()}
        assert re.search(
            r"drift: ✗ faithful(ness| probability) last 1h against the (baseline|1h before): psi",
            parts["all segments"],
        )
        assert re.search(r"drift: ✗ faithful(ness| probability) last 1h against", parts["app helpdesk, lang en"])
        assert "drift: none" in parts["app shop, lang en"]
        rows = [plain(row.inner_text()) for row in page.locator("#drift ~ .wide tbody tr").all()]
        for reference in ("baseline", "previous"):
            (row,) = (row for row in rows if f"faithfulness app helpdesk, lang en 1h {reference}" in row)
            assert f"✗drifted: psi {drift_of(product)['helpdesk', reference]:.3f}" in row.replace("✗ ", "✗")
        assert not [row for row in rows if "app shop" in row]


@pytest.mark.parametrize("theme", THEMES)
def test_threshold_and_below_are_seen_on_a_narrow_screen(product: Product, browser: Any, theme: str) -> None:
    with page_of(browser, NARROW, theme) as page:
        page.goto(f"{product.address}/")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
        part = page.locator(".part", has=page.get_by_role("heading", name="app helpdesk, lang en"))
        below = part.get_by_text("below", exact=False).last
        threshold = part.locator("td", has=page.locator(".tag", has_text="below"))
        assert re.search(r"0\.75\s+✗ below", threshold.inner_text())
        for seen in (below, threshold, *part.locator("th[scope=row], td").all()):
            box = seen.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= NARROW
        for held in page.locator(".wide").all():
            assert held.evaluate("e => e.scrollWidth <= e.clientWidth")
        assert "faithfulness is below its threshold 0.75" in page.locator(".now .notes").inner_text()
        page.goto(f"{product.address}/cases/leave-2000")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
        cell = page.locator("#scores ~ .wide td", has_text="below by").bounding_box()
        assert cell["x"] + cell["width"] <= NARROW


def prose(characters: int, seed: int) -> str:
    """Sentences of words that nobody has seen, with markup in each tenth: nothing that compresses well."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(20_000)]
    parts: list[str] = []
    length = 0
    while length < characters:
        said = " ".join(chance.choices(words, k=12)).capitalize() + f" {chance.randint(1, 999)} days. "
        parts.append(f"<img src=x onerror=alert(1)> {said}" if len(parts) % 10 == 0 else said)
        length += len(parts[-1])
    return "".join(parts)[: characters - 1] + "."


def large(name: str, characters: int) -> dict[str, Any]:
    """An event whose texts have so many characters in all."""
    asked, passage = f"A question about {name}?", prose(3000, 1)
    answer = prose(characters - len(asked) - len(passage), 2)
    return {"id": name, "question": asked, "contexts": [passage], "answer": answer,
            "labels": {"app": "helpdesk", "lang": "en"}}  # fmt: skip


# field case 71 d
@pytest.mark.parametrize(
    ("name", "characters", "seconds"),
    [("a-megabyte", 1_000_000, 60), pytest.param("the-largest", LARGEST, 180, marks=pytest.mark.soak)],
)
def test_a_very_long_answer_can_be_read(
    product: Product, browser: Any, name: str, characters: int, seconds: float
) -> None:
    """As long as the settings allow; nothing of it is left out, and what was not judged is told."""
    event = large(name, characters)
    sent(product, event)
    with page_of(browser, 1100) as page:
        page.goto(f"{product.address}/cases?q=about+{name}")
        assert page.locator("ol.cases > li").count() == 1
        assert len(page.locator("ol.cases").inner_text()) < 1000
        began = time.monotonic()
        page.get_by_role("link", name=f"A question about {name}?").click()
        page.wait_for_url("**/cases/*", timeout=seconds * 1000)
        shown = page.locator(".answer").inner_text()
        assert time.monotonic() - began < seconds
        assert len(shown) >= len(event["answer"])
        assert event["answer"][-200:] in shown
        assert page.locator(".answer img, .answer script").count() == 0
        assert "<img src=x onerror=alert(1)>" in shown
        assert page.locator("a.statement").count() == 500
        assert re.search(r"[\d,]+ statements beyond the first 500 were not judged", page.locator(".cause").inner_text())
        assert page.evaluate("document.documentElement.scrollWidth") <= 1100
        statement = page.locator("a.statement").first
        statement.click()
        page.locator("mark.lit, ol.statements > li:target").first.wait_for()


def test_an_answer_beyond_the_limit_is_a_dead_letter(product: Product) -> None:
    before = product.store.count(time.time())
    product.send([large("one-too-many", LARGEST + 1)])
    dead = {"reason": "too_many_characters"}
    wait_until(lambda: product.scorer.total("groundwatch_deadletters_total", **dead) == 1, 60, "the dead letter")
    assert product.store.count(time.time()) == before
    listed = run(product.variables, "deadletters", "--json")
    assert "too_many_characters" in listed
    assert "decode.max_characters allows 4000000" in listed
    # The page asks the broker every 30 s at most.
    wait_until(lambda: "dead letters: 1 in the last hour" in plain(product.get("/").text), 60, "told on the overview")
    assert "groundwatch deadletters --since 24h" in product.get("/").text


def limit(product: Product, size: int) -> None:
    """How large a case file its topic takes."""
    topic = product.variables["GROUNDWATCH__TOPICS__FLAGGED"]
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": product.variables["GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS"]})
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(20)


def test_what_the_broker_has_cut_is_told_on_the_page(product: Product) -> None:
    limit(product, 1_000_000)
    try:
        long_answer = large("cut-whole", 2_500_000)
        passages = [{"id": f"p{n}", "text": prose(400_000, 10 + n)} for n in range(4)]
        sent(product, long_answer, leave(3000, True, id="cut-passages", contexts=passages))
    finally:
        limit(product, 9_000_000)
    page = plain(product.get("/cases/cut-whole").text)
    assert "Without its text: the topic of case files refused the whole for its size" in page
    assert "Question, answer, passages and statements were left out" in page
    assert "(the question was left out)" in page
    assert "None was retrieved" not in page
    assert re.search(r"The event itself: \S+, partition 0, offset \d+", page)
    assert re.search(r'class="count not_found"><span aria-hidden="true">\?</span> \d+ not found', page)
    assert "(left out: too large for its topic)" in product.get("/cases").text
    page = plain(product.get("/cases/cut-passages").text)
    assert re.search(r"the text of [234] of 4 passages was left out", page)
    assert "Staff of grade 3000 have 50 days" in page


def exemplar(product: Product, app: str, lang: str) -> str:
    """What stands beside the count of flagged answers of a segment."""
    lines = [line for line in product.exemplars().splitlines() if line.startswith("groundwatch_flagged_total{")]
    own = [line for line in lines if f'app="{app}"' in line and f'lang="{lang}"' in line]
    found = [match[1] for line in own if (match := re.search(r' # {(?:event_id|trace_id)="([^"]+)"} ', line))]
    assert len(found) <= 1
    return found[0] if found else ""


@pytest.mark.parametrize(
    ("app", "lang", "changes"),
    [
        ("shop", "zh", {"id": "an-id-" + "x" * EXEMPLAR_CHARACTERS}),
        ("helpdesk", "zh", {"id": "short", "trace_id": "a-trace-" + "y" * EXEMPLAR_CHARACTERS}),
        ("shop", "other", {"id": "a-very-long-id-" + "z" * MAX_ID}),
        ("other", "zh", {"id": "of wei@example.org"}),
    ],
)
def test_the_digits_of_a_hashed_exemplar_lead_to_its_case(
    product: Product, browser: Any, app: str, lang: str, changes: dict[str, str]
) -> None:
    """From the monitor's own /metrics; and the id as it was logged leads there too."""
    event = leave(4000, True, labels={"app": app, "lang": lang.replace("other", "fr")}) | changes
    sent(product, event)
    wait_until(lambda: bool(exemplar(product, app, lang)), 30, "the exemplar")
    digits = exemplar(product, app, lang)
    name = event.get("trace_id", event["id"])
    if len(name) > EXEMPLAR_CHARACTERS:
        assert re.fullmatch(r"[0-9a-f]{32}", digits)
    with page_of(browser, 1100) as page:
        page.goto(f"{product.address}/trace/{digits}")
        page.wait_for_url("**/cases/*")
        case = page.url
        assert f"app {app}" in plain(page.locator(".case > .facts").inner_text())
        assert f"lang {lang}" in plain(page.locator(".case > .facts").inner_text())
        for known in (digits, event["id"], name):
            page.goto(f"{product.address}/trace/{known}")
            assert page.url == case
            assert page.goto(f"{product.address}/cases/{known}").status == 200
