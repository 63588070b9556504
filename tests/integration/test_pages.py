"""The pages of a real monitor, over cases that a real pipeline made: addresses, filters, safety, and what is away."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import orjson
import pytest

from consumer.case_filter import case_key
from consumer.decode import Decoder
from consumer.embedded import embedded_redis, free_port
from consumer.settings import Settings
from tests.case_files import case_file
from tests.integration.pages_harness import Site, event, scored, serving, settings_of
from tests.integration.scorer_harness import read_all
from tests.processes import groundwatch, wait_until

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> ![p](http://evil.example/p.png) "
    "[x](javascript:alert(3)) <iframe srcdoc='<script>alert(4)</script>'></iframe> \u202egpj.exe "
    "mail wei@example.org"
)
WRONG = "Grade 3 has 28 days of leave a year."


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One monitor for the tests that only look."""
    folder = tmp_path_factory.mktemp("pages")
    with embedded_redis(folder / "redis.log") as url:
        settings = settings_of(kafka, url)
        with serving(settings, folder, trace_link="https://traces.example/t/{trace_id}") as found:
            same = [
                event(n, f"{WRONG} Grade {n} has {20 + n} days.", question="How much leave is there?")
                for n in (3, 13, 23)
            ]
            good = [event(n, f"Grade {n} has {20 + n} days of leave a year.") for n in (4, 5, 6)]
            other = event(7, "It has 99 days.", labels={"app": "shop", "lang": "en", "model": "m-2"}, trace_id="t" * 80)
            hostile = event(8, f"{HOSTILE} has 1 day.", question=f"{HOSTILE}?", contexts=[f"{HOSTILE} 77"])
            mute = event(9, "", trace_id=None)
            scored(found, [*same, *good, other, hostile, mute, b"no event"], kept=9)
            yield found


class Tags(HTMLParser):
    """Every element of a page and its attributes, as a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def form_key(page: httpx.Response) -> str:
    """What a form of this page must carry."""
    found = re.search(r'name="form_key" value="([0-9a-f]+)"', page.text)
    assert found
    return found[1]


def rows(page: httpx.Response) -> list[str]:
    return re.findall(r'<h3><a href="/cases/([0-9a-f]{48})"', page.text)


def test_the_overview_shows_scores_of_every_segment_and_what_could_not_be_read(site: Site) -> None:
    page = site.get("/")
    assert page.status_code == 200
    assert "all segments" in page.text
    assert "app helpdesk, lang en" in page.text
    assert re.search(r'faithfulness</a></th>\s*<td class="number" data-label="mean"><strong>0\.\d{3}', page.text)
    assert '<svg class="chart course"' in page.text
    assert "empty answer" in page.text
    assert "dead letters: 1 in the last hour, 1 in the last day" in page.text
    assert site.get("/?window=24h").status_code == 200
    assert site.get("/?window=7y").status_code == 404


def test_addresses_of_alerts_and_dashboards_choose_cases(site: Site) -> None:
    assert len(rows(site.get("/cases"))) == 9
    assert len(rows(site.get("/cases?segment=app%3Dshop%2Clang%3Den&flag=faithfulness_low&from=1h"))) == 1
    assert len(rows(site.get("/cases?flag=faithfulness_low"))) == 4
    assert len(rows(site.get("/cases?why=audit&verdict=contradicted"))) == 4
    assert len(rows(site.get("/cases?labels=model%3Dm-2"))) == 1
    assert len(rows(site.get("/cases?q=GRADE%204"))) == 1
    assert len(rows(site.get("/cases?fault=retrieval"))) == 0
    assert "No case matches" in site.get("/cases?to=2h").text
    wrong = site.get("/cases?from=yesterday&q=kept")
    assert wrong.status_code == 400
    assert "is no time" in wrong.text
    unknown = site.get("/cases?segment=appp%3Dshop")
    assert unknown.status_code == 400
    assert "&#39;appp&#39; is no key of a segment (there are: app, lang)" in unknown.text
    assert site.get("/cases.jsonl?segment=appp%3Dshop").status_code == 400
    misspelt = site.get("/cases?segment=app%3Dshoop")
    assert misspelt.status_code == 200
    assert "app=shoop is not in segments.allow (there are: helpdesk, shop, other)" in misspelt.text


def test_the_same_wrong_statement_is_one_group(site: Site) -> None:
    page = site.get("/cases?group=statement")
    assert "3 answers say this" in re.sub(r"\s+", " ", page.text)
    (address,) = set(re.findall(r'href="(/cases\?says=[0-9a-f]{16})"><strong>3 ', page.text))
    assert len(rows(site.get(address))) == 3
    assert "<strong>3 answers</strong>" in site.get("/cases?group=question").text
    assert '<span class="key">model</span> m-1' in site.get(address).text, "which model said it"
    (times,) = re.findall(r"since <time[^>]*>([^<]+)</time>, newest <time[^>]*>([^<]+)</time>", page.text)
    assert times[0] <= times[1]


@pytest.mark.parametrize(
    "kind",
    [
        "application/x-www-form-urlencoded; charset=nonsense",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "text/plain",
    ],
)
def test_a_body_that_is_no_form_is_refused_without_a_word_in_the_log(site: Site, kind: str) -> None:
    for path in ("label/" + "0" * 48, "forget/" + "0" * 48, "logout"):
        answer = httpx.post(f"{site.address}/{path}", content=b"garbage=\xff", headers={"Content-Type": kind})
        assert answer.status_code in (400, 403), path
    assert "Traceback" not in site.log()


def test_an_endless_address_is_refused_in_a_line(site: Site) -> None:
    assert httpx.get(f"{site.address}/cases?q={'a' * 20_000}").status_code == 400
    assert "Traceback" not in site.log()


def test_a_redis_that_has_lost_its_cases_is_told(kafka: str, redis_url: str, tmp_path: Path) -> None:
    with serving(settings_of(kafka, redis_url), tmp_path) as found:
        scored(found, [event(3, WRONG)], kept=1)
        wait_until(lambda: "no case file is stored" not in found.get("/").text, 10, "it is there")
        assert found.cases.drop_oldest(10) == 1
        wait_until(lambda: "Answers were flagged, and no case file is stored" in found.get("/").text, 20, "told")


def test_a_case_is_found_by_every_name_it_has(site: Site) -> None:
    (key,) = rows(site.get("/cases?segment=app%3Dshop"))
    for name in (key, "e7", "t" * 80):
        page = site.get(f"/cases/{name}")
        assert page.status_code == 200
        assert f'href="/cases/{key}"' in page.text
    exemplar = re.findall(r'trace_id="([0-9a-f]{32})"', metrics_with_exemplars(site))
    assert exemplar
    for name in (exemplar[0], "t" * 80, "e7"):
        found = site.get(f"/trace/{name}")
        assert (found.status_code, found.headers["location"]) == (302, f"/cases/{key}")
    assert site.get("/cases/nobody").status_code == 404
    assert site.get("/trace/%3Cscript%3E").status_code == 404
    assert "<script>" not in site.get("/trace/%3Cscript%3Ex").text.replace("<script src", "")


def metrics_with_exemplars(site: Site) -> str:
    accepted = {"Accept": "application/openmetrics-text; version=1.0.0"}
    return httpx.get(f"http://{site.running.address}/metrics", headers=accepted).text


def test_a_case_shows_the_wrong_statement_and_what_speaks_against_it(site: Site) -> None:
    page = site.get("/cases/e3").text
    assert re.search(r'class="statement contradicted" href="#evidence-1-0" data-statement="1"', page)
    assert 'id="evidence-1-0"' in page
    assert 'data-says="1 2"' in page
    assert "because: another number" in page
    assert "✗</span> below by 0.250" in page
    assert "of this segment&#39;s" in page
    assert 'href="https://traces.example/t/trace-3"' in page
    assert "rate, inclusion probability 1" in page
    assert "went well" in page
    assert len(re.findall(r'<li><a href="/cases/[0-9a-f]{48}">How many days of leave does grade [456]', page)) >= 3


# field case 71 d
def test_hostile_text_is_inert_and_redacted(site: Site) -> None:
    for page in (site.get("/cases/e8"), site.get("/cases"), site.get("/cases?group=question")):
        assert page.status_code == 200
        assert "\u202e" not in page.text
        assert "wei@example.org" not in page.text
        tags = Tags()
        tags.feed(page.text)
        assert len(tags.found) > 50
        assert not {name for name, _ in tags.found} & {"img", "iframe", "object", "embed", "style", "base"}
        for name, attributes in tags.found:
            assert not [key for key in attributes if key.startswith("on") or key in ("style", "srcdoc")]
            assert name != "script" or attributes["src"].startswith("/static/pages.js")
            for key in ("href", "src", "action"):
                assert attributes.get(key, "/").startswith(("/", "#", "https://traces.example/t/")), (name, attributes)
    page = site.get("/cases/e8").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert '<span class="code">U+202E</span>' in page
    assert "[EMAIL-1]" in page


def test_every_answer_has_the_headers_that_keep_it_in(site: Site) -> None:
    for path in (
        "/",
        "/cases",
        "/cases/e3",
        "/cases/nobody",
        "/static/pages.css",
        "/static/nothing",
        "/elsewhere",
        "/trace/e3",
    ):
        headers = site.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["server"] == "groundwatch"
    assert site.get("/cases/e3").headers["cache-control"] == "no-store"


def test_a_foreign_name_of_the_host_is_refused(site: Site) -> None:
    assert site.get("/cases", Host="rebound.example").status_code == 421


def test_what_is_exported_is_read_as_events(site: Site) -> None:
    exported = site.get("/cases.jsonl?why=flagged&flag=faithfulness_low")
    lines = exported.text.splitlines()
    assert len(lines) == 4
    decoder = Decoder(Settings().decode)
    for line in lines:
        assert decoder.decode(line.encode(), fallback_id="x", broker_time=None).event.answer
    assert {orjson.loads(line)["case"]["fault"] for line in lines} <= {"generation", "unknown"}
    wait_until(lambda: "audit: somebody at 127.0.0.1 exported 4 case files" in site.log(), 5, "the audit line")


@pytest.mark.full
def test_a_page_holds_so_many_and_leads_on(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Also when many are of one moment."""
    now = time.time()
    settings = settings_of(kafka, redis_url)
    with serving(settings, tmp_path) as found:
        found.cases.put([case_file(n, now - 60 - (n > 70)) for n in range(120)], now)
        seen: list[str] = []
        path: str | None = "/cases"
        while path:
            page = found.get(path)
            seen += rows(page)
            link = re.search(r'<a href="([^"]+)" rel="next">', page.text)
            path = link[1].replace("&amp;", "&") if link else None
        assert len(seen) == len(set(seen)) == 120
        groups: list[str] = []
        path = "/cases?group=question"
        while path:
            page = found.get(path)
            assert "120 questions of 120 cases that match" in page.text
            groups += re.findall(r'href="(/cases\?asks=[0-9a-f]{16})"', page.text)
            link = re.search(r'<a href="([^"]+)" rel="next">Smaller', page.text)
            path = link[1].replace("&amp;", "&") if link else None
        assert len(groups) == len(set(groups)) == 120


@pytest.mark.full
def test_a_case_is_forgotten_only_by_a_form_of_ours(kafka: str, redis_url: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, redis_url)
    with serving(settings, tmp_path) as found:
        case = case_file(1, time.time())
        found.cases.put([case], time.time())
        address = f"{found.address}/forget/{case_key(case)}"
        assert httpx.post(address, data={"sure": "yes"}).status_code == 403
        page = found.get(f"/cases/{case_key(case)}")
        form = {"form_key": form_key(page), "sure": "yes"}
        assert httpx.post(address, data=form).status_code == 403
        evil = {"Origin": "http://evil.example"}
        assert found.client.post(address, data=form, headers=evil).status_code == 403
        assert found.client.post(address, data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert found.client.post(address, data=form | {"sure": ""}).status_code == 400
        assert found.cases.count(time.time()) == 1
        assert found.client.post(address, data=form).status_code == 200
        assert found.cases.count(time.time()) == 0
        assert found.get(f"/cases/{case_key(case)}").status_code == 404
        wait_until(lambda: f"removed 1 case files from Redis by id: {case_key(case)}" in found.log(), 5, "audit line")


@pytest.mark.full
def test_a_form_outlives_a_restart(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """A page that was open meanwhile, by another monitor over the same Redis; not one that somebody made up."""
    settings = settings_of(kafka, redis_url)
    listen = f"127.0.0.1:{free_port()}"
    case = case_file(1, time.time())
    key = case_key(case)
    with serving(settings, tmp_path, listen=listen) as found:
        found.cases.put([case], time.time())
        page = found.get(f"/cases/{key}")
        form = {"form_key": form_key(page), "by": "Wei", "note": "", "verdict": "bad"}
        cookies = dict(found.client.cookies)
    with serving(settings, tmp_path, listen=listen) as found:
        assert found.running.total("groundwatch_pages_up") == 1
        address = f"{found.address}/label/{key}"
        refused = httpx.post(address, data=form, cookies=dict.fromkeys(cookies, "x" * 32))
        assert refused.status_code == 403
        assert "Go back, reload the page and repeat" in refused.text
        assert httpx.post(address, data=form, cookies=cookies).status_code == 303
        assert "Wei says bad" in found.get(f"/cases/{key}").text


@pytest.mark.full
def test_a_label_goes_to_kafka_and_beside_its_case(kafka: str, redis_url: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, redis_url)
    with serving(settings, tmp_path) as found:
        case = case_file(1, time.time())
        key = case_key(case)
        found.cases.put([case, case_file(2, time.time())], time.time())
        assert len(rows(found.get("/cases?label=none"))) == 2
        form = {"form_key": form_key(found.get(f"/cases/{key}")), "by": "Wei", "note": "<b>26</b>, not 28"}
        address = f"{found.address}/label/{key}"
        assert httpx.post(address, data=form | {"verdict": "bad"}).status_code == 403
        assert found.client.post(address, data=form | {"verdict": "so-so"}).status_code == 400
        assert found.client.post(address, data=form | {"verdict": "bad", "by": ""}).status_code == 400
        assert found.client.post(f"{found.address}/label/{'0' * 48}", data=form | {"verdict": "bad"}).status_code == 404
        done = found.client.post(address, data=form | {"verdict": "bad"})
        assert (done.status_code, done.headers["location"]) == (303, f"/cases/{key}#label")
        page = found.get(f"/cases/{key}").text
        assert "Wei says bad" in page
        assert "&lt;b&gt;26&lt;/b&gt;, not 28" in page
        assert 'name="by" value="Wei"' in page
        assert rows(found.get("/cases?label=bad")) == [key]
        assert 'href="/cases?label=bad">1 bad</a>' in found.get("/").text
        (record,) = read_all(settings.kafka.bootstrap_servers, settings.topics.labels)
        assert record.key == case.record.id.encode()
        assert orjson.loads(record.value or b"")["verdict"] == "bad"
        assert orjson.loads(found.get("/cases.jsonl?label=bad").text)["case"]["label"] == "bad"
        wait_until(lambda: f"labelled the case {key} bad, by the name of Wei" in found.log(), 5, "the audit line")
        assert found.client.post(address, data=form | {"verdict": "none"}).status_code == 303
        assert "says bad" not in found.get(f"/cases/{key}").text


@pytest.mark.full
def test_beyond_loopback_one_has_to_sign_in(kafka: str, redis_url: str, tmp_path: Path) -> None:
    token = "a token for this test"
    settings = settings_of(kafka, redis_url)
    with serving(settings, tmp_path, listen=f"0.0.0.0:{free_port()}", token=token) as found:
        assert found.get("/cases").status_code == 401
        assert found.get("/static/pages.css").status_code == 200
        page = found.get("/cases?from=1h", Accept="text/html")
        assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Fcases%3Ffrom%3D1h")
        assert found.get("/cases", Authorization=f"Bearer {token}").status_code == 200
        assert found.get("/cases", Authorization="Bearer something else").status_code == 401
        wrong = found.client.post(f"{found.address}/login", data={"token": "guessed guessed", "next": "/cases"})
        assert wrong.status_code == 403
        for onward, leads in (
            ("/cases?from=1h", "/cases?from=1h"),
            ("//evil.example", "/"),
            ("https://e.example", "/"),
        ):
            entered = found.client.post(f"{found.address}/login", data={"token": token, "next": onward})
            assert (entered.status_code, entered.headers["location"]) == (303, leads)
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert token not in cookie
        page = found.get("/cases")
        assert page.status_code == 200
        assert found.client.post(f"{found.address}/logout", data={"form_key": form_key(page)}).status_code == 303
        assert found.get("/cases").status_code == 401
        assert token not in found.log()
        assert "was refused: a wrong token" in found.log()


@pytest.mark.full
def test_a_proxy_names_the_user(kafka: str, redis_url: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, redis_url)
    pages = {"listen": f"0.0.0.0:{free_port()}", "user_header": "X-Forwarded-User", "proxies": '["127.0.0.1"]'}
    with serving(settings, tmp_path, **pages) as found:
        assert found.get("/cases").status_code == 401
        assert "wei" in found.get("/cases", **{"X-Forwarded-User": "wei"}).text
        found.get("/cases.jsonl", **{"X-Forwarded-User": "wei"})
        wait_until(lambda: "audit: wei" in found.log(), 5, "the audit line names the user")


def test_an_open_address_without_a_way_to_sign_in_is_refused_at_the_start(tmp_path: Path) -> None:
    with groundwatch(
        "monitor", "127.0.0.1:1", tmp_path / "log", {"GROUNDWATCH__PAGES__LISTEN": "0.0.0.0:9110"}
    ) as running:
        assert running.process.wait(30) == 2
    said = (tmp_path / "log").read_text()
    assert "pages: listen is 0.0.0.0:9110, which others can reach" in said
    assert "Traceback" not in said


@pytest.mark.full
def test_an_address_that_is_taken_is_waited_for(kafka: str, redis_url: str, tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    settings = settings_of(kafka, redis_url)
    with serving(settings, tmp_path, listen=listen) as first:
        (tmp_path / "second").mkdir()
        with serving(settings, tmp_path / "second", listen=listen) as second:
            wait_until(lambda: f"another process listens on {listen}" in second.log(), 30, "the second one waits")
            wait_until(lambda: second.running.get("/healthz")[0] == 200, 30, "and lives")
            first.running.kill()
            wait_until(lambda: f"pages on http://{listen}/" in second.log(), 30, "the second one takes over")
            assert second.get("/cases").status_code == 200


@pytest.mark.full
def test_without_redis_the_scores_are_shown_and_the_cases_are_said_to_be_away(kafka: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, f"redis://127.0.0.1:{free_port()}/0")
    with serving(settings, tmp_path) as found:
        wait_until(lambda: found.running.get("/readyz")[1] == "active\n", 60, "active")
        overview = found.get("/")
        assert overview.status_code == 200
        assert "Case files cannot be read" in overview.text
        listed = found.get("/cases?flag=faithfulness_low")
        assert listed.status_code == 503
        assert "does not answer" in listed.text
        assert found.get("/cases/e1").status_code == 503
        assert found.running.get("/healthz")[0] == 200


@pytest.mark.full
def test_without_a_redis_at_all_it_says_where_cases_are(kafka: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, "")
    with serving(settings, tmp_path) as found:
        assert "redis.cases_url is not set" in found.get("/").text
        assert found.get("/cases").status_code == 503
