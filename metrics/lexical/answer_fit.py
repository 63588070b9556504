"""Fits what joins an answer's statements and its overlap: `metrics.lexical.answer.AnswerModel`.

Weights first, over all labelled sets, each with an offset of its own and both classes counting alike; then slope and
intercept on real RAG answers alone (Platt 1999), for there the probability is to mean what it says. Statements are
those of judges that did not see the answer's group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from metrics.calibration import fitted
from metrics.faithfulness import ask, log_odds
from metrics.judge import Judgement, JudgeRequest
from metrics.lexical import corpus
from metrics.lexical.answer import AnswerModel, values
from metrics.lexical.corpus import Row, event_of, fold_of
from metrics.lexical.judge import LexicalJudge
from metrics.logistic import logistic

Floats = npt.NDArray[np.float64]
REAL = ("ragtruth_qa_part", "mtrag_part")
"""Real RAG answers: what the probability is calibrated on."""
_SHARE = 300.0
"""Weight of a set, against the penalty of the regression."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A labelled answer: `values` as of `metrics.lexical.answer.values`."""

    values: tuple[float, float, float]
    label: int
    group: str


def answered_sets(data: Path, judges: Sequence[LexicalJudge]) -> dict[str, list[Answered]]:
    """The sets that may be fitted on, by name; a row of fold k by `judges[k]`."""
    return {name: _answered(corpus.labelled(data, name), judges) for name in corpus.LABELLED}


def with_answers(judges: Sequence[LexicalJudge], sets: Mapping[str, Sequence[Answered]]) -> list[LexicalJudge]:
    """The judges of the folds, with weights that saw no group of the fold; slope and intercept are of all folds."""
    folds = len(judges)
    weights = [
        _weights({n: [a for a in of_set if fold_of(a.group, folds) != fold] for n, of_set in sets.items()})
        for fold in range(folds)
    ]
    # Labels have no part in the centre; without it the folds would differ in level.
    centre = _centre(sets)
    real = _real(sets)
    scores = np.array([(a.values - centre) @ weights[fold_of(a.group, folds)] for a in real])
    return [
        LexicalJudge(replace(judge.model, answer=_calibrated(own, centre, real, scores)))
        for judge, own in zip(judges, weights, strict=True)
    ]


def _answered(rows: Sequence[Row], judges: Sequence[LexicalJudge]) -> list[Answered]:
    """The rows that have a statement."""
    found = []
    for row in rows:
        request = ask(event_of(row)).request
        if isinstance(request, JudgeRequest):
            judge = judges[fold_of(row.group, len(judges))]
            (judgement,) = judge.judge([request])
            if isinstance(judgement, Judgement):
                odds = [log_odds(verdict.probability) for verdict in judgement.verdicts]
                found.append(Answered(values(odds, judge.overlap(request)), row.label, row.group))
    return found


def fit(sets: Mapping[str, Sequence[Answered]]) -> AnswerModel:
    """Raises:
    ValueError: a set of `REAL` is missing or has one class only.
    """
    real, centre, weights = _real(sets), _centre(sets), _weights(sets)
    return _calibrated(weights, centre, real, np.array([(a.values - centre) @ weights for a in real]))


def _real(sets: Mapping[str, Sequence[Answered]]) -> list[Answered]:
    if missing := [name for name in REAL if len({a.label for a in sets.get(name, ())}) < 2]:
        raise ValueError(f"answers of both kinds are needed of {' and '.join(missing)}")
    return [a for name in REAL for a in sets[name]]


def _centre(sets: Mapping[str, Sequence[Answered]]) -> Floats:
    return np.asarray(np.mean([a.values for of_set in sets.values() for a in of_set], axis=0))


def _calibrated(weights: Floats, centre: Floats, real: Sequence[Answered], scores: Floats) -> AnswerModel:
    """`scores`: of the real answers, centred, by these weights or by those of their folds."""
    labels = np.array([a.label for a in real])
    curve = fitted(scores, np.ones(len(real), np.int64), labels, np.ones(len(real)))
    log_odds, mean, overlap = (round(float(curve.slope * weight), 4) for weight in weights)
    return AnswerModel(log_odds, mean, overlap, round(float(curve.intercept - curve.slope * centre @ weights), 4))


def _weights(sets: Mapping[str, Sequence[Answered]]) -> Floats:
    """Of log-odds, mean and overlap; none is below 0."""
    sets = {name: of_set for name, of_set in sets.items() if len({a.label for a in of_set}) == 2}
    raw = np.array([a.values for of_set in sets.values() for a in of_set])
    spread = raw.std(axis=0) + 1e-6
    x = (raw - raw.mean(axis=0)) / spread
    labels = np.array([float(a.label) for of_set in sets.values() for a in of_set])
    share = np.concatenate([_balance(of_set) for of_set in sets.values()])
    offsets = np.repeat(np.eye(len(sets)), [len(of_set) for of_set in sets.values()], axis=0)
    low = np.array([0.0] * x.shape[1] + [-np.inf] * len(sets))
    solved = logistic(np.hstack([x, offsets]), labels, share, low, np.full(len(low), np.inf), steps=800)
    return np.asarray(solved[: x.shape[1]] / spread)


def _balance(of_set: Sequence[Answered]) -> Floats:
    labels = np.array([a.label for a in of_set])
    return np.asarray(_SHARE * np.where(labels == 1, 0.5 / labels.sum(), 0.5 / (1 - labels).sum()))
