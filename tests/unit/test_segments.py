from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from consumer.segments import MAX_LABEL_CHARACTERS, OTHER, Segmenter, clean_label, normal_language, script_language
from consumer.settings import Segments
from metrics.event import Event

SETTINGS = Segments(allow={"app": ("hr", "it"), "lang": ("en", "zh", "ja")}, contrast=("model", "kb_version"))


def event(question: str | None = "How many days?", answer: str | None = "25.", **labels: str) -> Event:
    return Event(id="e", timestamp=0.0, question=question, contexts=(), answer=answer, labels=labels)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"app": "hr", "lang": "en"}, {"app": "hr", "lang": "en"}),
        ({"app": " hr ", "lang": "ZH_hans"}, {"app": "hr", "lang": "zh"}),
        ({"app": "HR"}, {"app": OTHER, "lang": "en"}),
        ({"lang": "fr-CA"}, {"app": OTHER, "lang": OTHER}),
        ({"lang": "auto"}, {"app": OTHER, "lang": "en"}),
        ({"lang": "other"}, {"app": OTHER, "lang": "en"}),
        ({"app": "hr\n# HELP evil"}, {"app": OTHER, "lang": "en"}),
        ({}, {"app": OTHER, "lang": "en"}),
    ],
)
def test_values_outside_the_allow_list_are_other(labels: dict[str, str], expected: dict[str, str]) -> None:
    assert Segmenter(SETTINGS).segment(event(**labels)) == expected


@pytest.mark.parametrize(
    ("label", "language"),
    [
        ("zh-CN", "zh"), ("ZH_hans", "zh"), ("Chinese", "zh"), ("Chinese (Simplified)", "zh"), ("中文", "zh"),
        ("zho", "zh"), ("yue", "zh"), ("cn", "zh"), ("en-US", "en"), ("EN_gb", "en"), ("English", "en"), ("eng", "en"),
        ("ja-JP", "ja"), ("de", "de"), ("zh-Hant-TW", "zh"), ("sv-SE", "sv"), ("en_US.UTF-8", "en"),
        ("", None), ("und", None), ("auto", None), ("*", None), ("klingonese", None), ("\ud83d", None), ("12", None),
    ],
)  # fmt: skip
def test_language_labels_in_the_fields_many_spellings(label: str, language: str | None) -> None:
    assert normal_language(label) == language


@pytest.mark.parametrize(
    ("question", "answer", "language"),
    [
        ("年假有几天？", "二十五天。", "zh"),
        ("How many days of leave do I have?", "25", "en"),
        ("有給休暇は何日ですか", "25日です。", "ja"),
        ("カタカナ", "", "ja"),
        ("연차는 며칠입니까?", "", "ko"),
        ("Сколько дней отпуска?", "", "ru"),
        ("كم عدد أيام الإجازة؟", "", "ar"),
        ("如何在 Kubernetes 里重启 Deployment pod？", "kubectl rollout restart", "zh"),
        ("What does 你好 mean in English?", "Hello", "en"),
        ("VPN?", "请打开网络设置，然后选择公司网络。", "zh"),
        ("优の良品 在哪里可以买到这个牌子的东西", "", "zh"),
        ("How do I order?", "请打开网络设置，然后选择公司网络，再点击申请按钮。", "en"),
        ("12 + 30 = ?", "42", None),
        ("", "", None),
        ("👍", "!!", None),
    ],
)
def test_language_by_script(question: str, answer: str, language: str | None) -> None:
    assert script_language(question, answer) == language


def test_an_event_without_question_and_answer_is_other() -> None:
    assert Segmenter(SETTINGS).segment(event(None, None)) == {"app": OTHER, "lang": OTHER}


def test_an_empty_allow_list_makes_no_segments() -> None:
    assert Segmenter(Segments(allow={"app": ()})).segment(event(app="hr")) == {"app": OTHER}
    assert Segmenter(Segments(allow={})).segment(event(app="hr")) == {}


def test_contrast_labels_are_kept_as_they_are_but_clean() -> None:
    labels = {"model": " m-1\n\x00", "kb_version": "", "tenant": "x"}
    assert Segmenter(SETTINGS).contrast(event(**labels)) == {"model": "m-1 �"}


@pytest.mark.parametrize("value", ["gpt-\ud83d", "\udc80", "a\nb", "a\x00b", "x" * 500, "‮abc", "a b", "中文模型"])
def test_no_label_value_breaks_an_exposition(value: str) -> None:
    # field case 56: a lone surrogate in one label made every later scrape fail.
    registry = CollectorRegistry()
    gauge = Gauge("g", "g", ["model"], registry=registry)
    segmenter = Segmenter(SETTINGS)
    for cleaned in (
        segmenter.contrast(event(model=value, app=value))["model"],
        *segmenter.segment(event(app=value)).values(),
    ):
        gauge.labels(cleaned).set(1)
    for _ in range(2):
        assert generate_latest(registry).decode("utf-8").count("\n") >= 3


@given(st.text(alphabet=st.characters(), max_size=200))
def test_a_clean_label_is_printable_encodable_short_and_stays_so(value: str) -> None:
    cleaned = clean_label(value)
    cleaned.encode("utf-8")
    assert cleaned.isprintable()
    assert len(cleaned) <= MAX_LABEL_CHARACTERS
    assert clean_label(cleaned) == cleaned


@given(st.dictionaries(st.sampled_from(["app", "lang", "model"]), st.text()), st.text(), st.text())
def test_any_event_has_a_segment_from_the_allow_lists(labels: dict[str, str], question: str, answer: str) -> None:
    segment: dict[str, Any] = Segmenter(SETTINGS).segment(event(question, answer, **labels))
    assert segment.keys() == SETTINGS.allow.keys()
    assert all(value == OTHER or value in SETTINGS.allow[name] for name, value in segment.items())
