"""The judge without a model: words, numbers, names and negations held against the contexts, joined by a logistic model.

Deterministic and cheap. It sees what is written, not what is meant: docs/judges.md says what it cannot see.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

from metrics.faithfulness import log_odds
from metrics.judge import Evidence, Judgement, JudgeRequest, Label, Verdict
from metrics.lexical.answer import overlap
from metrics.lexical.evidence import Index, Window
from metrics.lexical.features import VERSION, Examined, examine
from metrics.lexical.kinds import Conflict, Kind
from metrics.lexical.model import Model, load_model
from metrics.lexical.reading import Passage, read
from metrics.lexical.readings import Readings
from metrics.lexical.synonyms import in_words_of
from metrics.outcome import Reason, Unscored
from metrics.sentences import sentence_spans

log = logging.getLogger(__name__)

RULES = 5
"""Part of the identity: raise it when the same weights may give another verdict."""
DECISIVE = 0.9
"""A number, negation, opposite or order in conflict with a window that agrees with this much of the rest decides."""
DECISIVE_NUMBER = 0.7
"""The same for a number that no context holds, where the evidence has another one in its unit."""
DECISIVE_NAME = 0.97
"""The same for a name that no context holds, where the evidence has another one."""
NEAREST = 400
"""Characters shown of a chunk that is near by its embedding only."""
DECIDED = -0.25
"""Log-odds of support that a decisive conflict leaves at most: just unsupported, for such conflicts are often false."""


@dataclass(frozen=True, slots=True)
class Studied:
    """A request as read: its sources (chunks, then user turns), and every statement held against them."""

    sources: tuple[str, ...]
    passages: tuple[Passage, ...]
    index: Index
    examined: tuple[Examined, ...]


class LexicalJudge:
    """Fulfils `metrics.judge.Judge`. Safe to use from several threads: what is kept is read-only."""

    def __init__(self, model: Model | None = None) -> None:
        """Raises:
        WeightsError: the shipped weights cannot be used.
        """
        self.model = model or load_model(VERSION)
        self._readings = Readings()

    @property
    def name(self) -> str:
        return "lexical"

    @property
    def identity(self) -> str:
        return f"lexical/{VERSION}.{RULES}/{self.model.digest}"

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        """One judgement a request, in order. Without a context with text: `unscored(no_context)`."""
        return [self._one(request) for request in requests]

    def _one(self, request: JudgeRequest) -> Judgement | Unscored:
        if not any(chunk.text.strip() for chunk in request.contexts):
            return Unscored(Reason.NO_CONTEXT)
        try:
            studied = self.study(request)
            verdicts = [self.verdict(one, request, studied.sources) for one in studied.examined]
        except Exception:
            log.exception("the lexical judge failed")
            return Unscored(Reason.JUDGE_ERROR)
        return Judgement(tuple(verdicts))

    @property
    def threshold(self) -> float | None:
        """None: words alone err too often to flag an answer that nobody asked to be flagged by this."""
        return None

    def overlap(self, request: JudgeRequest) -> float:
        """Share of the answer's words that stand in the contexts or in what the user said: `answer.overlap`."""
        text = request.answer or "\n".join(statement.text for statement in request.statements)
        return overlap(read(text), (self._readings.of(source) for source in _sources(request)))

    def faithful_probability(self, request: JudgeRequest, judgement: Judgement) -> float | Unscored:
        """Calibrated probability that the whole answer is faithful, in [0, 1]."""
        if self.model.answer is None:
            return Unscored(Reason.NOT_CONFIGURED)
        if not judgement.verdicts:
            return Unscored(Reason.NO_CLAIMS)
        try:
            odds = [log_odds(verdict.probability) for verdict in judgement.verdicts]
            return self.model.answer.probability(odds, self.overlap(request))
        except Exception:
            log.exception("the lexical judge failed")
            return Unscored(Reason.JUDGE_ERROR)

    def study(self, request: JudgeRequest) -> Studied:
        """Read contexts and statements, and compare them."""
        sources = _sources(request)
        passages = tuple(self._readings.of(text) for text in sources)
        index = Index(passages, self.model.prior)
        texts = in_words_of(sources, [statement.text for statement in request.statements])
        return Studied(sources, passages, index, tuple(examine(texts, index, sources, request.similarities)))

    def verdict(self, examined: Examined, request: JudgeRequest, sources: Sequence[str]) -> Verdict:
        """What words alone say of one statement."""
        log_odds = self.model.support(examined.features)
        decisive = _decisive(examined)
        if decisive:
            log_odds = min(log_odds, DECIDED)
        probability = 1.0 / (1.0 + math.exp(-max(min(log_odds, 30.0), -30.0)))
        evidence = _evidence(examined.window, request, sources)
        if log_odds > 0:
            return Verdict(Label.SUPPORTED, _why_supported(examined), evidence, probability)
        if decisive or (examined.conflicts and self.model.contradiction(examined.features) > 0):
            conflict = decisive or max(examined.conflicts, key=lambda c: c.strength)
            return Verdict(Label.CONTRADICTED, _why_contradicted(conflict), evidence, probability)
        return Verdict(Label.NOT_FOUND, _why_not_found(examined), evidence, probability)


def _sources(request: JudgeRequest) -> tuple[str, ...]:
    """Chunks, then user turns."""
    return (*(chunk.text for chunk in request.contexts), *request.conversation)


def _decisive(examined: Examined) -> Conflict | None:
    """The first conflict that decides, whatever the weights say."""
    needed = {Kind.NUMBER: DECISIVE_NUMBER if examined.absent_numbers else DECISIVE, Kind.NAME: DECISIVE_NAME}
    for conflict in examined.conflicts:
        if conflict.kind is not Kind.SUBSTITUTION and examined.agreement >= needed.get(conflict.kind, DECISIVE):
            return conflict
    return None


def _evidence(window: Window | None, request: JudgeRequest, sources: Sequence[str]) -> tuple[Evidence, ...]:
    if window is None:
        return _nearest(request)
    start, end = window.sentences[0].start, window.sentences[-1].end
    quote = sources[window.source][start:end]
    if window.source < len(request.contexts):
        return (Evidence(window.source, request.contexts[window.source].id, start, end, quote),)
    turn = window.source - len(request.contexts)
    return (Evidence(None, f"conversation[{turn}]", start, end, quote),)


def _nearest(request: JudgeRequest) -> tuple[Evidence, ...]:
    """The most similar chunk's beginning, for a statement that shares no word with the contexts: of another language,
    say. Nothing where there are no vectors."""
    known = {
        k: similarity
        for k, (similarity, chunk) in enumerate(zip(request.similarities, request.contexts, strict=False))
        if similarity is not None and chunk.text.strip()
    }
    if not known:
        return ()
    at = max(known, key=lambda k: known[k])
    text = request.contexts[at].text
    spans = sentence_spans(text, 0, len(text))
    if not spans:
        return ()
    start = spans[0][0]
    end = max((high for _, high in spans if high - start <= NEAREST), default=min(spans[0][1], start + NEAREST))
    return (Evidence(at, request.contexts[at].id, start, end, text[start:end]),)


def _why_supported(examined: Examined) -> str:
    share = examined.features["best_window"]
    return f"{share:.0%} of its weight stands in the evidence"


def _why_contradicted(conflict: Conflict) -> str:
    said, found = _short(conflict.said), _short(conflict.found)
    match conflict.kind:
        case Kind.NUMBER:
            return f"the answer says «{said}», the evidence «{found}»"
        case Kind.NEGATION:
            return f"negation: the answer says «{said}», the evidence «{found}»"
        case Kind.OPPOSITE:
            return f"opposites: the answer says «{said}», the evidence «{found}»"
        case Kind.ORDER:
            return f"turned round: the answer says «{said}», the evidence «{found}»"
        case Kind.NAME | Kind.NAME_IN_PLACE:
            return f"the answer names «{said}», the evidence «{found}»"
        case Kind.SUBSTITUTION:
            return f"where the answer says «{said}», the evidence says «{found}»"


def _why_not_found(examined: Examined) -> str:
    if examined.absent_numbers:
        return f"number not in the contexts: {_listed(examined.absent_numbers)}"
    if examined.absent_names:
        return f"name not in the contexts: {_listed(examined.absent_names)}"
    if examined.absent:
        return f"not in the contexts: {_listed(examined.absent)}"
    return "its words are in the contexts, but no passage says this"


def _listed(words: Sequence[str]) -> str:
    return _short(", ".join(words[:5]) + (", ..." if len(words) > 5 else ""))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"
