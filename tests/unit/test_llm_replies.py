"""Replies of a chat model are read tolerantly and never guessed at (field cases 23, 24)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.judge import Label
from metrics.llm.replies import (
    by_id,
    items_of,
    label_of,
    last_object,
    number_of,
    problem_of,
    spoken,
    truth_of,
    values_of,
)

GOOD = {"reason": "it's there", "verdict": "supported", "quote": "26 days"}
SEVERAL = {"claims": [{"id": n, "reason": "r", "verdict": "supported"} for n in range(1, 6)]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        "```json\n" + json.dumps(GOOD, indent=2) + "\n```",
        'Here you are: {"example": 1}\n' + json.dumps(GOOD) + "\nHope that helps [1].",
        '<think>I might say {"verdict": "contradicted"} or\n{"verdict": "not_found"}</think>\n' + json.dumps(GOOD),
        'so {"verdict": "not_found"}? no. </think>' + json.dumps(GOOD),
        '{"verdict": "not_found"} wait, that is wrong: ' + json.dumps(GOOD),
        r'{"reason": "it\'s there", "verdict": "supported", "quote": "26 days"}',
        json.dumps(GOOD | {"confidence": 0.93, "notes": [1, {"a": 2}]}),
        '{"reason": "it\'s there",\n "verdict": "supported", "quote": "26 days",}',
        '{"reason": "it\'s\nthere", "verdict": "supported", "quote": "26 days"}',
        json.dumps([GOOD]),
    ],
)
def test_a_verdict_is_found_however_it_is_wrapped(text: str) -> None:  # field case 24
    found = last_object(text, "verdict")
    assert found is not None
    assert (label_of(found["verdict"]), found["quote"]) == (Label.SUPPORTED, "26 days")
    assert found["reason"].split() == ["it's", "there"]


def test_a_reply_that_is_all_thinking_says_nothing() -> None:
    assert spoken('<think>{"verdict": "supported"}').strip() == ""
    assert last_object('<think>{"verdict": "supported"}', "verdict") is None


@pytest.mark.parametrize("value", ["1", 1, True, "Yes", "Supported.", "SUPPORTED", "1.0", 1.0, "支持"])
def test_support_however_it_is_written(value: Any) -> None:  # field case 24
    assert label_of(value) is Label.SUPPORTED


@pytest.mark.parametrize("value", ["0", 0, False, "No", "not_found", "Not found", "not supported", "未提到", "不支持"])
def test_no_support_is_not_found(value: Any) -> None:
    assert label_of(value) is Label.NOT_FOUND


@pytest.mark.parametrize("value", ["maybe", "", None, 2, 0.5, [], {}, "supported or not_found", float("nan")])
def test_what_is_no_verdict_is_none(value: Any) -> None:
    assert label_of(value) is None


def test_yes_no_and_problems() -> None:
    assert [truth_of(v) for v in (True, "yes", "False", 0, "是", "perhaps")] == [True, True, False, False, True, None]
    assert [problem_of(v) for v in ("none", "Missing", "different", "不同", "hm")] == [
        Label.SUPPORTED,
        Label.NOT_FOUND,
        Label.CONTRADICTED,
        Label.CONTRADICTED,
        None,
    ]


def test_of_a_cut_list_the_whole_items_are_kept() -> None:  # field case 24
    whole = json.dumps(SEVERAL)
    cut = whole[: int(len(whole) * 0.6)]
    items = items_of(cut, "claims", "verdict")
    assert items is not None
    assert [item["id"] for item in items] == [1, 2]


@pytest.mark.parametrize("key", ["claims", "verdicts", "results"])
def test_the_list_may_have_another_name_or_none(key: str) -> None:  # field case 24
    listed = SEVERAL["claims"]
    assert items_of(json.dumps({key: listed}), "claims", "verdict") == listed
    assert items_of(json.dumps(listed), "claims", "verdict") == listed
    by_key = {key: {"1": {"verdict": "supported"}, "2": {"verdict": "no"}}}
    assert items_of(json.dumps(by_key), "claims", "verdict") == [
        {"id": "1", "verdict": "supported"},
        {"id": "2", "verdict": "no"},
    ]


def test_an_empty_list_was_read_and_talk_was_not() -> None:
    assert items_of('{"claims": []}', "claims", "verdict") == []
    assert items_of("All claims are supported [1].", "claims", "verdict") is None
    assert items_of("", "claims", "verdict") is None


def test_items_are_matched_by_id() -> None:  # field case 23
    items: list[dict[str, Any]] = [
        {"id": "claim 3", "verdict": "a"},
        {"id": 1.0, "verdict": "b"},
        {"id": 7, "verdict": "x"},
        {"id": 0, "verdict": "x"},
        {"id": True, "verdict": "x"},
        {"verdict": "x"},
    ]
    assert {n: item["verdict"] for n, item in by_id(items, 3).items()} == {3: "a", 1: "b"}


def test_an_id_that_came_twice_with_different_verdicts_counts_as_missing() -> None:
    assert set(by_id([{"id": 1, "v": "a"}, {"id": 1, "v": "b"}, {"id": 2, "v": "c"}, {"id": 2, "v": "c"}], 2)) == {2}


def test_items_without_ids_count_in_order_if_none_is_missing() -> None:
    assert by_id([{"v": "a"}, {"v": "b"}], 2) == {1: {"v": "a"}, 2: {"v": "b"}}
    assert by_id([{"v": "a"}], 2) == {}


def test_numbers_however_they_are_written() -> None:
    assert [number_of(v) for v in (3, 3.0, "3", "[3]", "3 of 4", 3.5, None, True)] == [
        3,
        3,
        3,
        3,
        None,
        None,
        None,
        None,
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
broken = st.text(alphabet="{}[]\",:\\'`<>/think idverdctclams01 \n", max_size=80)


@given(broken | json_values.map(json.dumps) | st.text(max_size=200))
def test_nothing_that_a_model_says_raises(text: str) -> None:
    values_of(text)
    last_object(text, "verdict")
    items = items_of(text, "claims", "verdict")
    by_id(items or [], 3)


@given(json_values)
def test_no_value_raises(value: Any) -> None:
    assert label_of(value) in (None, *Label)
    assert truth_of(value) in (None, True, False)
    number_of(value)
    problem_of(value)


@given(st.lists(st.sampled_from(["supported", "contradicted", "not_found"]), min_size=1, max_size=8), st.data())
def test_a_cut_anywhere_never_adds_or_changes_a_verdict(labels: list[str], data: st.DataObject) -> None:
    whole = json.dumps({"claims": [{"id": n, "reason": "x", "verdict": v} for n, v in enumerate(labels, start=1)]})
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    found = by_id(items_of(cut, "claims", "verdict") or [], len(labels))
    assert all(item["verdict"] == labels[number - 1] for number, item in found.items())


def test_deep_nesting_and_long_rubbish_are_read_in_time() -> None:
    assert last_object("[" * 100_000 + json.dumps(GOOD), "verdict") is None
    assert last_object("{" * 1_000 + json.dumps(GOOD), "verdict") == GOOD
