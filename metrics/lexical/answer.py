"""How probable it is that a whole answer is faithful, by its statements' log-odds and the words it shares."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metrics.faithfulness import summed_up
from metrics.language import UNSPACED
from metrics.lexical.reading import Passage

_WIDE = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class AnswerModel:
    """P(faithful) = 1 / (1 + exp(-(intercept + Σ weight · value))): weights of what `values` gives.

    `log_odds`: of `metrics.faithfulness.summed_up`, half of which are the two lowest statements. `mean`: of all
    statements. `overlap`: see `overlap`.
    """

    log_odds: float
    mean: float
    overlap: float
    intercept: float

    def probability(self, log_odds: Sequence[float], shared: float) -> float:
        """In [0, 1]. `log_odds`: of support, one a statement; `shared`: the overlap.

        Raises:
            ValueError: no statement.
        """
        weights = (self.log_odds, self.mean, self.overlap)
        total = self.intercept + sum(w * v for w, v in zip(weights, values(log_odds, shared), strict=True))
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))


def values(log_odds: Sequence[float], shared: float) -> tuple[float, float, float]:
    """What an answer is weighed by, in the order of the fields of `AnswerModel`."""
    return summed_up(log_odds), sum(log_odds) / len(log_odds), shared


def overlap(answer: Passage, sources: Iterable[Passage]) -> float:
    """Share of the answer's different words that stand in the sources, in [0, 1]; 0 of an answer without a word.

    Words as written, function words too, and neighbouring pairs of characters where words are not set apart. Of the
    whole answer, what claims nothing among it: it adds to the statements, it does not stand for them.
    """
    mine = _words(answer)
    held: set[str] = set()
    for source in sources:
        held |= _words(source) & mine
    return len(held) / len(mine) if mine else 0.0


def _words(passage: Passage) -> set[str]:
    found: set[str] = set()
    for sentence in passage.sentences:
        found |= sentence.words
        found.update(term for term in sentence.vocabulary if _WIDE.match(term))
    return found
