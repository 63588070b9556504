from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from consumer.decode import Decoder
from consumer.sampling import KeyCheck, KeyIsNotId, Sampler, unit_interval
from consumer.settings import Decode, Sampling, Settings
from metrics.event import Event

IDS = st.binary(min_size=1, max_size=60)
RATES = st.floats(min_value=1e-6, max_value=1.0)
EVENT = Event(id="e", timestamp=0.0, question="q", contexts=(), answer="a")


def sampler(**values: Any) -> Sampler:
    return Sampler(Sampling.model_validate(values))


def event(**values: Any) -> Event:
    return Event(**({"id": "e", "timestamp": 0.0, "question": "q", "contexts": (), "answer": "a"} | values))


@given(IDS, st.text(max_size=20))
def test_a_unit_is_in_the_half_open_interval(event_id: bytes, salt: str) -> None:
    assert 0.0 <= unit_interval(salt, event_id) < 1.0


@given(IDS, RATES)
def test_both_stages_compare_the_same_number(event_id: bytes, rate: float) -> None:
    one = sampler(rate=rate)
    decision = one.decide(event_id, EVENT, {}, ())
    assert decision.unit == unit_interval("groundwatch", event_id)
    assert one.keep_early(event_id, ()) == decision.kept == (decision.unit < rate)
    assert one.keep_early(event_id) == decision.kept


@given(IDS, RATES, RATES)
def test_a_smaller_sample_lies_inside_a_larger_one(event_id: bytes, a: float, b: float) -> None:
    low, high = sorted((a, b))
    if sampler(rate=low).keep_early(event_id):
        assert sampler(rate=high).keep_early(event_id)


def test_ten_percent_lies_inside_twenty_five_percent() -> None:
    ids = [b"evt-%d" % n for n in range(20_000)]
    ten, twenty_five = ([one.keep_early(i) for i in ids] for one in (sampler(rate=0.10), sampler(rate=0.25)))
    assert sum(ten) > 1800
    assert all(wide for narrow, wide in zip(ten, twenty_five, strict=True) if narrow)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.05, 0.3, 0.999999])
@pytest.mark.parametrize("shape", ["evt-{}", "{}", "{:08d}", "qa.events-3-{}"])
def test_sequential_ids_are_sampled_at_the_rate(rate: float, shape: str) -> None:
    # field case 71 (c): within five standard deviations of the binomial.
    one = sampler(rate=rate)
    kept = sum(one.keep_early(shape.format(n).encode()) for n in range(100_000))
    assert abs(kept - 100_000 * rate) <= 5 * math.sqrt(100_000 * rate * (1 - rate)) + 1


def test_every_process_chooses_the_same_events() -> None:
    # field case 71 (c): Python's own hash() differs from process to process.
    program = (
        "from consumer.sampling import Sampler\nfrom consumer.settings import Sampling\n"
        "s = Sampler(Sampling(rate=0.05))\n"
        "print(*[n for n in range(2000) if s.keep_early(b'evt-%d' % n)])"
    )
    chosen = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "77")
    }  # fmt: skip
    assert len(chosen) == 1
    assert len(chosen.pop().split()) > 50


def test_known_units_stay_what_they_are() -> None:
    # Another release must choose the same events. printf 'groundwatch\0evt-1' | sha256sum
    assert unit_interval("groundwatch", b"evt-1") == (0x2F15C5F43778218B >> 11) / 2**53
    assert unit_interval("other", b"evt-1") != unit_interval("groundwatch", b"evt-1")


def test_odd_ids_are_ids() -> None:
    # field case 71 (c): an id that reads as nothing is still one id; without any, the position tells events apart.
    ids = [b"0", b"null", b" ", b"qa.events-0-1", b"qa.events-0-2", b"\xff\xfe"]
    units = {unit_interval("groundwatch", event_id) for event_id in ids}
    assert len(units) == len(ids)


@pytest.mark.parametrize("given", ["", '"id": null, ', '"id": "", ', '"id": "  ", '])
def test_missing_ids_never_collapse_into_one(given: str) -> None:
    # field case 71 (c): events without an id are told apart by their position, the same at every reading.
    decoder, one = Decoder(Decode()), sampler(rate=0.25)
    record = f'{{{given}"question": "q", "contexts": ["c"], "answer": "a"}}'.encode()

    def chosen() -> list[int]:
        kept = []
        for offset in range(400):
            decoded = decoder.decode(record, fallback_id=f"qa.events-0-{offset}", broker_time=1.8e9).event
            if one.decide(decoded.id.encode(), decoded, {}, ()).kept:
                kept.append(offset)
        return kept

    first = chosen()
    assert 60 <= len(first) <= 140
    assert chosen() == first


def test_one_id_for_all_events_is_one_decision() -> None:
    # field case 71 (c): what claims to be one event is sampled as one; nothing random hides the fault.
    one = sampler(rate=0.5)
    assert len({one.decide(b"same", EVENT, {}, ()).kept for _ in range(100)}) == 1


@pytest.mark.parametrize(
    ("settings", "key", "headers", "expected"),
    [
        ({}, b"k", [("event-id", b"h")], None),
        ({"key_is_id": True}, b"k", None, b"k"),
        ({"key_is_id": True}, b"", None, None),
        ({"key_is_id": True}, None, None, None),
        ({"id_header": "event-id"}, b"k", [("other", b"x"), ("event-id", b"h")], b"h"),
        ({"id_header": "event-id"}, b"k", [("event-id", None)], None),
        ({"id_header": "event-id", "key_is_id": True}, b"k", [("event-id", b"")], b"k"),
        ({"id_header": "event-id", "key_is_id": True}, b"k", (), b"k"),
    ],
)
def test_where_the_early_id_comes_from(
    settings: dict[str, Any], key: bytes | None, headers: Any, expected: bytes | None
) -> None:
    assert sampler(**settings).early_id(key, headers) == expected


SEGMENTED = {
    "rate": 0.1,
    "segment_rates": {"app=hr": 0.2, "lang=zh": 0.3, "app=hr,lang=zh": 0.05, "app=it": 0.9},
}


@pytest.mark.parametrize(
    ("segment", "rate"),
    [
        ({"app": "hr", "lang": "zh"}, 0.05),
        ({"app": "hr", "lang": "en"}, 0.2),
        ({"app": "other", "lang": "zh"}, 0.3),
        ({"app": "it", "lang": "zh"}, 0.9),  # two with one condition each: the higher rate
        ({"app": "other", "lang": "other"}, 0.1),
        ({}, 0.1),
    ],
)
def test_the_most_specific_segment_rate_wins(segment: dict[str, str], rate: float) -> None:
    one = sampler(**SEGMENTED)
    decision = one.decide(b"id", EVENT, segment, ())
    assert (decision.probability, decision.sampled_by) == (rate, "rate")
    assert one.highest_rate == 0.9


@given(IDS, st.sampled_from(["hr", "it", "other"]), st.sampled_from(["zh", "en", "other"]))
def test_stage_one_never_drops_what_stage_two_would_keep(event_id: bytes, app: str, lang: str) -> None:
    one = sampler(**SEGMENTED)
    if one.decide(event_id, EVENT, {"app": app, "lang": lang}, ()).kept:
        assert one.keep_early(event_id, ())


NEGATIVE = {"name": "thumbs_down", "negative_feedback": True}
LABEL = {"name": "pilot", "label": "customer=acme = co"}
HEADER = {"name": "debug", "header": "x-debug"}
HEADER_VALUE = {"name": "canary", "header": "x-lane=canary"}


@pytest.mark.parametrize(
    ("rule", "values", "headers", "holds"),
    [
        (NEGATIVE, {"feedback": -1.0}, (), True),
        (NEGATIVE, {"feedback": 0.0}, (), False),
        (NEGATIVE, {"feedback": None}, (), False),
        (LABEL, {"labels": {"customer": "acme = co"}}, (), True),
        (LABEL, {"labels": {"customer": "other"}}, (), False),
        (HEADER, {}, [("x-debug", b"")], True),
        (HEADER, {}, [("x-debug", None)], True),
        (HEADER, {}, [("X-Other", b"1")], False),
        (HEADER, {}, None, False),
        (HEADER_VALUE, {}, [("x-lane", b"canary")], True),
        (HEADER_VALUE, {}, [("x-lane", b"stable"), ("x-lane", b"canary")], True),
        (HEADER_VALUE, {}, [("x-lane", b"stable")], False),
    ],
)
def test_an_always_rule_keeps_with_probability_one(
    rule: dict[str, Any], values: dict[str, Any], headers: Any, holds: bool
) -> None:
    one = sampler(rate=1e-9, always=[rule])
    decision = one.decide(b"id", event(**values), {}, headers)
    if holds:
        assert (decision.kept, decision.probability, decision.sampled_by) == (True, 1.0, f"rule:{rule['name']}")
        assert one.keep_early(b"id", headers)
    else:
        assert (decision.kept, decision.probability, decision.sampled_by) == (False, 1e-9, "rate")


@pytest.mark.parametrize("rule", [NEGATIVE, LABEL])
def test_a_rule_on_the_decoded_event_makes_stage_one_keep_everything(rule: dict[str, Any]) -> None:
    one = sampler(rate=0.01, always=[rule])
    assert one.highest_rate == 1.0
    assert all(one.keep_early(b"%d" % n) for n in range(1000))


def test_a_header_rule_is_decided_at_stage_one() -> None:
    one = sampler(rate=1e-9, always=[HEADER])
    assert one.highest_rate == 1e-9
    assert one.reads_headers
    assert one.keep_early(b"id", [("x-debug", b"1")])
    assert not one.keep_early(b"id", [("other", b"1")])
    assert not one.keep_early(b"id", ())
    assert one.keep_early(b"id"), "headers that were not read may match: stage 2 decides"


def test_the_estimate_over_mixed_rates_is_unbiased() -> None:
    # Invariant 11: weights 1/p give back the number of all events, whatever rate or rule kept each.
    one = sampler(rate=0.1, segment_rates={"lang=zh": 0.5}, always=[NEGATIVE])
    total = 0.0
    for n in range(40_000):
        one_event = event(feedback=-1.0 if n % 10 == 0 else None)
        segment = {"lang": "zh" if n % 3 == 0 else "en"}
        decision = one.decide(b"evt-%d" % n, one_event, segment, ())
        total += decision.kept / decision.probability
    assert abs(total - 40_000) < 5 * math.sqrt(40_000 * 9)


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        ({"segment_rates": {"hr": 0.5}}, "must read 'dimension=value'"),
        ({"segment_rates": {"app=hr,app=it": 0.5}}, "names 'app' twice"),
        ({"segment_rates": {"app=": 0.5}}, "must read"),
        ({"segment_rates": {"team=x": 0.5}}, "no dimension 'team' .there are: app, lang"),
        ({"segment_rates": {"app=hr": 0.5}}, "'hr' is not in segments.allow.app"),
        ({"segment_rates": {"lang=zh": 0}}, "greater than 0"),
        ({"rate": 0}, "greater than 0"),
        ({"always": [NEGATIVE, NEGATIVE]}, "same name"),
    ],
)
def test_settings_that_could_never_apply_are_refused(sampling: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate({"sampling": sampling})


def test_other_is_a_segment_too() -> None:
    settings = Settings.model_validate({"sampling": {"segment_rates": {"lang=other,app=other": 0.5}}})
    assert Sampler(settings.sampling).rate_of({"lang": "other", "app": "other"}) == 0.5


def test_keys_that_are_ids_pass_and_the_check_ends() -> None:
    check = KeyCheck()
    for n in range(1_000_000):
        check.observe(b"evt-%d" % n)
    assert check.done


@pytest.mark.parametrize(("users", "latest"), [(1, 1_000), (500, 1_000), (3_000, 10_000), (100_000, 100_000)])
def test_keys_that_are_users_are_found_out(users: int, latest: int) -> None:
    check = KeyCheck()
    keys = [b"user-%d" % (int(unit_interval("users", b"%d" % n) * users)) for n in range(latest)]
    with pytest.raises(KeyIsNotId, match=r"distinct keys per event.*key_is_id = false.*id_header"):
        deque(map(check.observe, keys), maxlen=0)


def test_a_few_repeated_ids_pass() -> None:
    check = KeyCheck()
    for n in range(100_000):
        check.observe(b"evt-%d" % (n - (n % 20 == 0)))  # one in twenty is a duplicate
    assert not check.done


def test_records_without_a_key_count_for_nothing() -> None:
    check = KeyCheck()
    for _ in range(20_000):
        check.observe(None)
        check.observe(b"")
    assert not check.done


def test_records_read_again_after_an_assignment_are_no_repeats() -> None:
    check = KeyCheck()
    for _ in range(3):
        for n in range(900):
            check.observe(b"evt-%d" % n)
        check.restart()


def test_the_check_keeps_its_memory_bounded() -> None:
    check = KeyCheck(most_keys=64)
    for n in range(200_000):
        check.observe(b"evt-%d" % n)
        assert len(check._counts) <= 64
