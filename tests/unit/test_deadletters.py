"""Dead letters keep where a record was first read; redrive sends each once an attempt, at most three times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from consumer.deadletter_hints import hint_of, missing_reasons
from consumer.deadletter_reading import Letter
from consumer.deadletters import attempts, dead_letter, origin_headers, original_position, original_time
from consumer.decoding.reasons import INTERNAL_ERROR, Refusal, Repair
from consumer.delivered import Headers
from consumer.record import Position
from consumer.redrive import MAX_ATTEMPTS, Chooser, Left, Redriven, Sending
from consumer.scorer_metrics import ScorerMetrics
from consumer.since import moment

FIRST = Position("qa.events", 3, 41)
LETTER = Letter(Position("qa.deadletter", 0, 7), 100.0, "unrecognised", "no form", FIRST, 90.5, 0, b"k", b"{}", [])


def letter_of(headers: Headers, *, read_at: Position, logged: float | None = 12.0) -> Headers:
    return dead_letter(
        "dead", reason="not_json", detail="d", read_at=read_at, logged=logged, key=b"k", value=b"v", headers=headers,
        keep_payload=True,
    ).headers  # fmt: skip


def test_a_record_that_fails_twice_keeps_its_first_place_time_and_count() -> None:
    first = letter_of([("tenant", b"a"), ("tenant", b"b"), ("none", None)], read_at=FIRST, logged=90.5)
    assert (original_position(Position("x", 0, 0), first), original_time(None, first), attempts(first)) == (
        FIRST, 90.5, 0,
    )  # fmt: skip
    sent = Chooser(set()).choose(replace(LETTER, headers=[("tenant", b"a"), ("tenant", b"b"), ("none", None)]))
    assert isinstance(sent, Redriven)
    again = letter_of(sent.headers, read_at=Position("qa.redrive", 1, 5), logged=5000.0)
    assert (original_position(Position("x", 0, 0), again), original_time(None, again), attempts(again)) == (
        FIRST, 90.5, 1,
    )  # fmt: skip
    assert [h for h in again if not h[0].startswith("groundwatch-")] == [
        ("tenant", b"a"), ("tenant", b"b"), ("none", None),
    ]  # fmt: skip
    assert len({name for name, _ in again if name.startswith("groundwatch-")}) == len(again) - 3, "a header twice"


def test_a_producers_header_with_our_prefix_is_kept() -> None:
    assert ("groundwatch-id", b"7") in letter_of([("groundwatch-id", b"7")], read_at=FIRST)


@given(
    st.text(alphabet=st.characters(codec="utf-8"), min_size=1), st.integers(0, 2**31), st.integers(0, 2**62),
    st.none() | st.integers(0, 2**42), st.integers(0, 9),
)  # fmt: skip
def test_headers_say_what_was_written(
    topic: str, partition: int, offset: int, milliseconds: int | None, count: int
) -> None:
    source = Position(topic, partition, offset)
    headers = origin_headers(source, None if milliseconds is None else milliseconds / 1000, count)
    assert original_position(Position("other", 0, 0), headers) == source
    assert attempts(headers) == count
    expected = -1.0 if milliseconds is None else milliseconds / 1000
    assert original_time(-1.0, headers) == pytest.approx(expected)


@given(st.lists(st.tuples(st.sampled_from(["topic", "partition", "offset", "attempt", "logged"]), st.binary())))
def test_unusable_headers_are_no_position(pairs: list[tuple[str, bytes]]) -> None:
    headers = [(f"groundwatch-{name}", content) for name, content in pairs]
    here = Position("here", 0, 0)
    assert isinstance(original_position(here, headers), Position)
    assert attempts(headers) >= 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans()), max_size=40))
def test_every_letter_is_sent_once_or_counted_as_left(letters: list[tuple[int, int, bool]]) -> None:
    made = [
        replace(LETTER, original=Position("qa.events", 0, offset), attempts=count, value=b"x" if payload else None)
        for offset, count, payload in letters
    ]
    chooser = Chooser(set())
    sent = [chooser.choose(letter) for letter in made]
    assert chooser.chosen.total() + chooser.left.total() == len(made) == chooser.letters
    keys = [
        (original_position(FIRST, s.headers), attempts(s.headers)) for s in sent if s is not None
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert all(1 <= attempt <= MAX_ATTEMPTS for _, attempt in keys)
    second = Chooser(chooser.sent)
    assert [second.choose(letter) for letter in made] == [None] * len(made)


def test_what_is_left_is_counted_by_why() -> None:
    before = Position("qa.events", 3, 40)
    chooser = Chooser({Sending(before, 1)}, ("unrecognised",), since=50.0, most=1)
    for letter in (
        replace(LETTER, reason="not_json"),
        replace(LETTER, time=49.0),
        replace(LETTER, original=None),
        replace(LETTER, value=None),
        replace(LETTER, attempts=3),
        LETTER,
        replace(LETTER, original=Position("qa.events", 0, 1)),
        replace(LETTER, original=before),
        LETTER,
    ):
        chooser.choose(letter)
    assert dict(chooser.left) == dict.fromkeys(set(Left) - {Left.NO_FIX}, 1)
    assert chooser.chosen == {"unrecognised": 1}


def test_a_letter_that_was_written_twice_is_one_and_a_repeat() -> None:
    sent_before = replace(LETTER, original=Position("qa.events", 3, 40))
    useless = replace(LETTER, original=Position("qa.events", 3, 39), reason="not_json")
    without = replace(LETTER, original=Position("qa.events", 3, 38), value=None)
    stranger = replace(LETTER, original=None)
    twice = [LETTER, sent_before, useless, without, stranger]
    chooser = Chooser({Sending(Position("qa.events", 3, 40), 1)})
    for letter in (*twice, *twice, replace(without, value=b"{}"), replace(LETTER, reason="internal_error")):
        chooser.choose(letter)
    assert dict(chooser.left) == {
        Left.SENT_BEFORE: 1, Left.NO_FIX: 1, Left.NO_PAYLOAD: 1, Left.NOT_OURS: 2,
        Left.REPEAT: 5,  # the last for another reason
    }  # fmt: skip
    assert chooser.chosen == {"unrecognised": 2}, "the payload that came with the second letter"
    assert chooser.seen_reasons == {"unrecognised": 6, "not_json": 1, "internal_error": 1}


def test_a_repeat_among_what_the_filters_leave_out_is_none_of_what_they_take() -> None:
    chooser = Chooser(set(), since=50.0)
    sent = [chooser.choose(replace(LETTER, time=time)) for time in (40.0, 41.0, 60.0, 61.0)]
    assert [one is not None for one in sent] == [False, False, True, False]
    assert dict(chooser.left) == {Left.OLDER: 2, Left.REPEAT: 1}


def test_a_reason_that_no_letter_has_is_told_with_those_that_there_are() -> None:
    there = {"not_json": 2, "unrecognised": 1200, "": 1}
    assert missing_reasons(["nope", "not_json", "nope"], there, "qa.dead") == [
        "no dead letter on qa.dead has the reason 'nope'; there are: unrecognised (1,200), not_json (2), (none) (1)"
    ]
    assert missing_reasons(["nope"], {}, "qa.dead") == [
        "no dead letter on qa.dead has the reason 'nope'; there are none at all"
    ]


@pytest.mark.parametrize("reason", [*Refusal, INTERNAL_ERROR])
def test_what_the_hint_says_of_redriving_is_what_happens(reason: str) -> None:
    letter = replace(LETTER, reason=str(reason))
    left = Chooser(set()).choose(letter) is None
    assert left == ("redrive leaves these" in hint_of(reason))
    assert Chooser(set(), (str(reason),)).choose(letter) is not None


def test_every_reason_has_its_own_advice() -> None:
    unknown = hint_of("a reason of a later version")
    assert unknown
    assert all(hint_of(reason) != unknown for reason in (*Refusal, INTERNAL_ERROR, ""))


def test_every_reason_and_repair_counts_from_zero() -> None:
    registry = CollectorRegistry()
    ScorerMetrics(registry, metrics={}, outputs=(), versions={"groundwatch": "t"})
    for reason in (*Refusal, INTERNAL_ERROR):
        assert registry.get_sample_value("groundwatch_deadletters_total", {"reason": str(reason)}) == 0
    for kind in Repair:
        assert registry.get_sample_value("groundwatch_input_repairs_total", {"kind": str(kind)}) == 0


@pytest.mark.parametrize("text", ["", "2", "h", "yesterday", "-2h", "2 weeks", "2026-13-01"])
def test_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|month"):
        moment(text, 0.0)


def test_times_with_and_without_a_zone() -> None:
    assert (
        moment("2026-11-29T12:00:00+02:00", 0.0)
        == moment("2026-11-29T10:00:00Z", 0.0)
        == moment("2026-11-29 10:00", 0.0)
    )
    assert moment("1.5d", 200_000.0) == 200_000.0 - 1.5 * 86_400
