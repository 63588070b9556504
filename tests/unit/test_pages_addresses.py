"""The addresses of the pages: what a query string asks for, and that every filter has an address of its own."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.case_filter import CaseFilter
from consumer.pages.addresses import FLAGS, VERDICTS, AddressError, Query, case_address, read_query
from consumer.segment_choice import unlisted

NOW = 1_790_000_000.0
KEYS = ("app", "lang")


def asked(address: str) -> Query:
    return read_query(parse_qsl(urlsplit(address).query), KEYS)


def test_an_address_of_an_alert_is_a_filter() -> None:
    query = asked("/cases?segment=app%3Dhr-helpdesk%2Clang%3Den&flag=faithfulness_low&from=1h")
    assert query.filter(NOW) == CaseFilter(
        since=NOW - 3600, flags=("faithfulness_low",), segment={"app": "hr-helpdesk", "lang": "en"}
    )


def test_the_times_of_a_dashboard_are_read() -> None:
    wanted = asked("/cases?from=2026-11-29T10:00:00.000Z&to=2026-11-29T11:00:00.000Z").filter(NOW)
    assert (wanted.since, wanted.until) == (1795946400.0, 1795950000.0)


def test_all_segments_together_choose_nothing() -> None:
    assert asked("/cases?segment=app%3Dall%2Clang%3Dall").segment == {}
    assert asked("/cases?segment=app%3D%2Clang%3Dzh").segment == {"lang": "zh"}


def test_all_chooses_nothing() -> None:
    assert asked("/cases?segment=all").segment == asked("/cases?segment=app=all,lang=all").segment == {}


def test_lists_may_be_repeated_or_have_commas() -> None:
    assert asked("/cases?fault=retrieval&fault=prompt").faults == asked("/cases?fault=retrieval,prompt").faults


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/cases?segment=hr", "segment: 'hr' must read name=value"),
        ("/cases?segment=ap=hr", "segment: 'ap' is no key of a segment (there are: app, lang)"),
        ("/cases?flag=<script>", "flag: '<script>' is none of faithfulness_low"),
        ("/cases?flag=faithfulnes_low", "flag: 'faithfulnes_low' is none of"),
        ("/cases?fault=nope", "fault: 'nope' is none of"),
        ("/cases?verdict=supported,nope", "verdict: 'nope' is none of supported, contradicted, not_found"),
        ("/cases?why=x", "why: 'x' is none of flagged, audit"),
        ("/cases?label=maybe", "label: 'maybe' is none of good, bad, none"),
        ("/cases?says=xyz", "says: 16 hex digits are expected"),
        ("/cases?before=nan", "before: 'nan' is no time in seconds"),
        ("/cases?group=colour", "group: 'colour' is none of question, statement"),
    ],
)
def test_a_value_that_cannot_be_is_named(address: str, said: str) -> None:
    with pytest.raises(AddressError, match=re.escape(said)):
        asked(address)


def test_a_time_that_is_none_is_named() -> None:
    with pytest.raises(AddressError, match="from: 'yesterday' is no time"):
        asked("/cases?from=yesterday").filter(NOW)


def test_times_in_the_wrong_order_are_told() -> None:
    with pytest.raises(AddressError, match="from 1h is later than to 2h"):
        asked("/cases?from=1h&to=2h").filter(NOW)


def test_what_others_add_to_an_address_is_ignored() -> None:
    assert asked("/cases?utm_source=mail&flag=") == Query()


def test_the_place_of_a_page_holds_its_own_moment() -> None:
    until = asked("/cases?before=1000.5&skip=2").filter(NOW).until
    assert until is not None
    assert 1000.5 < until < 1000.5000001


WORD = st.from_regex(r"[a-z0-9_]{1,20}", fullmatch=True)
PLAIN = st.text("abcXYZ09-_.#&?/%+;'\"<> 中é", min_size=1).map(str.strip).filter(bool)
QUERIES = st.builds(
    Query,
    segment=st.dictionaries(st.sampled_from(KEYS), PLAIN, max_size=2),
    flags=st.lists(st.sampled_from(FLAGS), unique=True, max_size=3).map(tuple),
    verdicts=st.lists(st.sampled_from(VERDICTS), unique=True, max_size=2).map(tuple),
    text=PLAIN | st.just(""),
    said=st.sampled_from([(), ("good",), ("bad", "none")]),
    before=st.none() | st.floats(0, 2e9),
    skip=st.integers(0, 999),
)


@given(QUERIES)
def test_the_address_of_a_query_asks_for_the_same(query: Query) -> None:
    assert asked(query.address()) == query


@given(st.lists(st.tuples(st.sampled_from(["segment", "flag", "from", "q", "before", "skip", "labels"]), st.text())))
def test_no_query_string_raises_anything_else(parameters: list[tuple[str, str]]) -> None:
    try:
        read_query(parameters, KEYS).filter(NOW)
    except AddressError:
        return


def test_an_id_with_anything_in_it_is_one_step_of_a_path() -> None:
    assert case_address("a/b?c#d é") == "/cases/a%2Fb%3Fc%23d%20%C3%A9"


def test_the_label_of_a_series_is_the_key_of_its_segment() -> None:
    """Prometheus has names of its own for some keys; links of alerts are made of them."""
    query = read_query([("segment", "data_centre=eu,segment_metric=x")], ("data-centre", "metric"))
    assert query.segment == {"data-centre": "eu", "metric": "x"}


def test_a_value_outside_the_list_is_told() -> None:
    allow = {"app": ("hr",), "lang": ("en", "zh")}
    assert unlisted({"app": "other", "lang": "zh"}, allow) == []
    (told,) = unlisted({"app": "hrr"}, allow)
    assert told.startswith("segment: app=hrr is not in segments.allow (there are: hr, other)")
