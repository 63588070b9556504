"""The overview over a scorebook that has seen a fall: what it says, and that the page says it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from consumer.pages.dead_letters import Counted
from consumer.pages.overview import Overview, below_thresholds, overview
from consumer.pages.rendering import Renderer, files
from consumer.pages.sources import Looks, Sources
from consumer.record import ScoreRecord, encode_record
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from metrics.answer import ALL
from metrics.contrast import Contrast, Kind, Part, Side, Verdict
from metrics.exposition import Progress
from tests.score_records import score_record

NOW = 1_790_000_000.0
HOUR = 3600.0
SETTINGS = Settings.model_validate({"segments": {"allow": {"app": ["helpdesk", "shop"], "lang": ["en"]}}})


class Clock:
    at = NOW - 10 * HOUR

    def __call__(self) -> float:
        return self.at


def answers() -> Iterator[ScoreRecord]:
    """Ten hours of yes-and-no; half an hour ago the good ones became fewer."""
    chance = random.Random(8)
    for number in range(1200):
        at = NOW - 10 * HOUR + number * 30.0
        good = 0.95 if at < NOW - HOUR / 2 else 0.3
        unscored = ("answer_relevance",) if number % 3 == 0 else ()
        yield score_record(
            number,
            at,
            {"faithfulness": float(chance.random() < good), "topic_similarity": 0.9 + chance.random() / 100},
            failed=unscored,
            definitions={"faithfulness": "0badcafe", "topic_similarity": "3fa9c1d2", "answer_relevance": "aaaa0000"},
            thresholds={"faithfulness": 0.75},
            trace_id=f"trace-{number}",
        )


@pytest.fixture(scope="module")
def sources() -> Sources:
    clock = Clock()
    book = Scorebook(SETTINGS, clock)
    for record in answers():
        clock.at = record.event_time
        book.count(encode_record(record), record.event_time)
        if int(record.event_time) % 300 == 0:
            book.attend()
    clock.at = NOW
    book.attend()
    progress = Progress(True, True, {"5m": 1.0, "1h": 0.5, "24h": 0.4}, 0.9)
    return Sources(
        SETTINGS, "t", Looks(book, lambda: 0.0), lambda: progress, lambda: (True, "active"), None,
        lambda: Counted(3, 40), None, clock,
    )  # fmt: skip


def page(found: Overview) -> str:
    values = {
        "page": found, "usual": "1h", "path": "/", "form_key": "", "visitor": None, "may_leave": False, "version": "t",
        "now": NOW, "kept_days": 14.0, "most": 50_000,
    }  # fmt: skip
    return re.sub(r"\s+", " ", Renderer(files()).render("overview.html", **values))


def test_a_fall_is_told_with_its_time_its_size_and_its_cases(sources: Sources) -> None:
    found = overview(sources, "1h")
    fall = next(line for line in found.changes if line.fell)
    assert fall.segment in ("all segments", "app helpdesk, lang en")
    assert abs(fall.change.shift.start - (NOW - HOUR / 2)) < 1200
    text = page(found)
    assert "faithfulness fell from 0.9" in text
    assert re.search(r"since about <time [^>]+>2026-", text)
    assert f'href="/trace/{fall.change.shift.cases[0].trace_id}"' in text
    assert "Which labels explain it is not known yet" in text


def test_what_explains_a_change_stands_beside_it(sources: Sources) -> None:
    found = overview(sources, "1h")
    before, after = Side(100, 100.0, 1.0, 0.95), Side(50, 50.0, 1.0, 0.3)
    names, size = (("<m-2>",), ("m-1",)), (-0.6, -0.6, -0.7, -0.5, 0.001, 0.002)
    part = Part("model", Kind.REPLACED, *names, before, after, *size, Verdict.EXPLAINS)
    line = found.changes[0]
    contrast = Contrast(before, after, -0.65, -0.7, -0.6, (part,))
    book = sources.looks.book
    book.explain(line.change, contrast)
    explained = overview(replace(sources, looks=Looks(book, lambda: 0.0)), "1h")
    told = next(one for one in explained.changes if one.change.shift == line.change.shift)
    assert told.because == "model <m-2> in place of m-1: -0.600 [-0.700, -0.500]"
    text = page(explained)
    assert "model &lt;m-2&gt; in place of m-1" in text
    assert "✗</span> explains" in text


def test_what_is_degraded_comes_first(sources: Sources) -> None:
    found = overview(sources, "1h")
    assert "Of the last 1h only 50% is read yet: the scores rest on that part." in found.notes
    assert any("answer relevance is degraded, only 0%" in note for note in found.notes)
    assert "Case files are not kept: redis.cases_url is not set." in found.notes
    text = page(found)
    assert "dead letters: 3 in the last hour, 40 in the last day" in text
    assert re.search(r">judge timeout</td><td [^>]+>app helpdesk, lang en</td><td [^>]+>4\d</td>", text)


def test_a_scorer_that_sends_nothing_is_seen(sources: Sources) -> None:
    newest = sources.looks.look("1h").newest
    assert newest is not None
    assert not any("No score has come" in note for note in overview(sources, "1h").notes)
    late = Clock()
    late.at = newest
    book = Scorebook(SETTINGS, late)
    silent = replace(sources, looks=Looks(book, lambda: 0.0), now=late)
    assert any("No score has come yet" in note for note in overview(silent, "1h").notes)
    record = score_record(1, newest, {"faithfulness": 1.0})
    book.count(encode_record(record), newest)
    late.at = newest + 600.0
    silent = replace(sources, looks=Looks(book, lambda: 0.0), now=late)
    assert any("No score has come for 10 min" in note for note in overview(silent, "1h").notes)


def test_the_worst_segment_stands_next_to_all_and_the_silent_are_named(sources: Sources) -> None:
    found = overview(sources, "5m")
    assert [part.name for part in found.segments] == ["all segments", "app helpdesk, lang en"]
    assert "app shop, lang en" in found.silent
    (score,) = (s for s in found.segments[1].scores if s.metric == "faithfulness")
    assert score.below == (score.reading.high is not None and score.reading.high < 0.749)
    assert score.few
    assert score.cases == "/cases?segment=app%3Dhelpdesk%2Clang%3Den&flag=faithfulness_low&from=5m"
    assert found.segments[0].cases == "/cases?from=5m"
    assert found.segments[0].segment == (ALL, ALL)


def test_what_is_below_its_threshold_is_told_first_but_not_at_any_length(sources: Sources) -> None:
    found = overview(sources, "5m")
    (part,) = (part for part in found.segments if not part.whole)
    score = next(s for s in part.scores if s.metric == "faithfulness")
    assert score.below
    mean = f"{score.reading.mean:.3f}"
    told = f"app helpdesk, lang en: faithfulness is below its threshold 0.75: {mean}, 95 % interval 0."
    assert any(note.startswith(told) for note in found.notes[:2])
    assert len(below_thresholds([part] * 6)) == 6
    assert below_thresholds([part] * 10)[6:] == ["4 more scores are below their thresholds"]


def test_a_standby_shows_no_scores_and_says_why(sources: Sources) -> None:
    standby = Progress(False, False, {}, 0.9)
    found = overview(replace(sources, progress=lambda: standby, ready=lambda: (True, "standby: another one")), "")
    assert found.window == "1h"
    assert not found.segments
    assert found.notes[0] == "No scores are shown yet: standby: another one."
    assert "no scores to show yet" in page(found)
    waiting = replace(sources, progress=lambda: None, dead_letters=lambda: Counted(fault="Local: Timed out"))
    assert "How many events could not be read is not known: Local: Timed out." in overview(waiting, "").notes
