"""Readings of the chunks that come back: kept up to a number of words, the least recently used given up first."""

from __future__ import annotations

import threading
from collections import OrderedDict

from metrics.lexical.reading import Passage, read

WORDS_KEPT = 200_000
"""Some 40 MB: a word of a reading takes about 200 bytes. Chunks differ too much in length to be counted themselves."""


class Readings:
    """Reads texts and keeps the readings of at most `words` words. Safe to use from several threads."""

    def __init__(self, words: int = WORDS_KEPT) -> None:
        self._most = words
        self._used = 0
        self._kept: OrderedDict[str, tuple[Passage, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, text: str) -> Passage:
        """The reading of `text`.

        >>> readings = Readings()
        >>> readings.of("Returns are free.") is readings.of("Returns are free.")
        True
        """
        with self._lock:
            if (found := self._kept.get(text)) is not None:
                self._kept.move_to_end(text)
                return found[0]
        passage = read(text)
        size = _words(passage)
        with self._lock:
            if size <= self._most and text not in self._kept:
                self._kept[text] = (passage, size)
                self._used += size
            while self._used > self._most:
                self._used -= self._kept.popitem(last=False)[1][1]
        return passage


def _words(passage: Passage) -> int:
    """Terms and words as written, of all sentences; one for a text without any."""
    return 1 + sum(len(sentence.terms) + len(sentence.words) for sentence in passage.sentences)
