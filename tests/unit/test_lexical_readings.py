"""Kept readings: the same ones come back, and long chunks cannot fill the memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from metrics.lexical.reading import read
from metrics.lexical.readings import Readings


@given(st.lists(st.text(alphabet="ab 1.好", max_size=40), max_size=30), st.integers(min_value=0, max_value=60))
def test_whatever_is_kept_the_reading_is_that_of_the_text(texts: list[str], words: int) -> None:
    readings = Readings(words)
    for text in texts:
        assert readings.of(text) == read(text)
    assert len(readings) <= min(words, len(set(texts)))


def test_what_was_used_last_is_kept() -> None:
    first, second, third = "one apple a day", "two pears a week", "six plums a month"
    size = len(read(first).sentences[0].terms) + len(read(first).sentences[0].words) + 1
    readings = Readings(2 * size + 2)
    kept = readings.of(first)
    readings.of(second)
    assert readings.of(first) is kept
    readings.of(third)
    assert readings.of(first) is kept


def test_a_text_longer_than_all_that_may_be_kept_gives_nothing_else_up() -> None:
    readings = Readings(30)
    kept = readings.of("Returns are free.")
    long = " ".join(f"word{number}" for number in range(200)) + "."
    assert readings.of(long) is not readings.of(long)
    assert readings.of("Returns are free.") is kept
