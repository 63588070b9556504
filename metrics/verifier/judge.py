"""The local verifier as a judge: words and network joined, without any call to elsewhere."""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from metrics.faithfulness import answer_log_odds, log_odds
from metrics.judge import Evidence, Judgement, JudgeRequest, Label, Verdict
from metrics.language import UNSPACED
from metrics.lexical.judge import DECIDED, LexicalJudge, Studied
from metrics.lexical.reading import Sentence, read_sentence
from metrics.lexical.words import fold
from metrics.metric import definition
from metrics.outcome import Reason, Unscored
from metrics.verifier.features import VERSION, features_of, refuting, supporting
from metrics.verifier.joined import Joined
from metrics.verifier.reader import Held, Question, Reader, in_the_light_of
from metrics.verifier.windows import Placed, coverages

log = logging.getLogger(__name__)

MARKED = 0.5
"""Probability from which on a token is called unsupported."""
MOST_MARKED = 5
"""Unsupported words that a reason names."""
AT_ONCE = 8
"""Answers read together: enough to fill the network's passes, and few enough that a beat comes every few seconds."""

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


def _unheard() -> None:
    pass


@dataclass(frozen=True, slots=True)
class LocalJudge:
    """Fulfils `metrics.judge.Judge`. Calls from several threads wait for one another."""

    lexical: LexicalJudge
    reader: Reader
    joined: Joined
    network: str
    """Names base and trained weights, or a foreign model: part of the identity."""
    name: str = "local"
    narrowing: str = ""
    """Names the vectors by which the reader narrows long contexts, as verdicts depend on them; empty: words alone."""
    turned: Callable[[], None] = _unheard
    """Called after every few answers: a batch of long ones takes a while, in which it shows that something moves."""
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    @property
    def identity(self) -> str:
        narrowed = f" narrowed/{definition(self.narrowing)}" if self.narrowing else ""
        return f"{self.name}/{VERSION}/{self.network}/{self.joined.digest} {self.lexical.identity}{narrowed}"

    @property
    def threshold(self) -> float:
        """The probability of faithfulness under which an answer is flagged, as it ships with the weights."""
        return self.joined.threshold

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        """One judgement a request, in order. Without a context with text: `unscored(no_context)`."""
        found: list[Judgement | Unscored] = []
        with self._one_at_a_time:
            for start in range(0, len(requests), AT_ONCE):
                found += self._all(requests[start : start + AT_ONCE])
                self.turned()
        return found

    def _all(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        try:
            studied = [_study(self.lexical, request) for request in requests]
            there = [(r, s) for r, s in zip(requests, studied, strict=True) if s is not None]
            readings = iter(self.reader.read([question_of(r, s) for r, s in there]))
            return [
                Unscored(Reason.NO_CONTEXT) if s is None else self._judgement(r, s, next(readings))
                for r, s in zip(requests, studied, strict=True)
            ]
        except Exception:
            if len(requests) > 1:
                # One request that breaks the network must not cost the others their verdicts.
                middle = len(requests) // 2
                return self._all(requests[:middle]) + self._all(requests[middle:])
            log.exception("the local judge failed")
            return [Unscored(Reason.JUDGE_ERROR)] * len(requests)

    def _judgement(
        self, request: JudgeRequest, studied: Studied, readings: Sequence[Sequence[Held]]
    ) -> Judgement | Unscored:
        verdicts = []
        for k, examined in enumerate(studied.examined):
            words = self.lexical.verdict(examined, request, studied.sources)
            if not all(math.isfinite(value) for held in readings[k] for value in held.classes):
                return Unscored(Reason.NON_FINITE)
            features = features_of(log_odds(words.probability), words.label is Label.CONTRADICTED, readings[k])
            verdicts.append(self._verdict(k, words, features, readings[k], request, studied))
        return Judgement(tuple(verdicts))

    def _verdict(
        self,
        k: int,
        words: Verdict,
        features: Mapping[str, float],
        readings: Sequence[Held],
        request: JudgeRequest,
        studied: Studied,
    ) -> Verdict:
        conflict = self.joined.conflict_seen(features)
        odds = min(self.joined.support(features), DECIDED if conflict else math.inf)
        probability = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))
        best, against = supporting(readings), refuting(readings)
        if odds > 0:
            evidence = _evidence(best, k, request, studied) or words.evidence
            return Verdict(Label.SUPPORTED, "the evidence says so", evidence, probability)
        if against and (conflict or self.joined.contradiction(features) > 0):
            reason = words.reason if words.label is Label.CONTRADICTED else "the evidence says otherwise"
            return Verdict(
                Label.CONTRADICTED,
                reason + self._marked(k, against, request),
                _evidence(against, k, request, studied),
                probability,
            )
        reason = words.reason if words.label is Label.NOT_FOUND else "no passage says this"
        marked = self._marked(k, best, request) if best else ""
        return Verdict(Label.NOT_FOUND, reason + marked, words.evidence, probability)

    def _marked(self, k: int, held: Held, request: JudgeRequest) -> str:
        found = self.unsupported(request.question, request.statements[k].text, held)
        return f"; unsupported: {', '.join(found[:MOST_MARKED])}" if found else ""

    def unsupported(self, question: str | None, statement: str, held: Held) -> list[str]:
        """Words of the statement that the token head calls unsupported, in order; neighbours stand together."""
        whole = in_the_light_of(question, statement)
        offset = len(whole) - len(statement)
        words = list(_WORD.finditer(statement))
        starts = self.reader.network.lengths([whole[: offset + m.start()] for m in words])
        ends = self.reader.network.lengths([whole[: offset + m.end()] for m in words])
        found: list[tuple[int, int]] = []
        for word, before, until in zip(words, starts, ends, strict=True):
            marks = held.marks[before : max(until, before + 1)]
            if len(marks) and float(marks.max()) >= MARKED:
                if found and not statement[found[-1][1] : word.start()].strip():
                    found[-1] = (found[-1][0], word.end())
                else:
                    found.append(word.span())
        return [statement[a:b] for a, b in found]

    def faithful_probability(self, request: JudgeRequest, judgement: Judgement) -> float | Unscored:
        """Calibrated probability that the whole answer is faithful, in [0, 1]."""
        if self.joined.answer is None:
            return Unscored(Reason.NOT_CONFIGURED)
        if not judgement.verdicts:
            return Unscored(Reason.NO_CLAIMS)
        return self.joined.answer.probability(answer_log_odds(judgement.verdicts), len(judgement.verdicts))


def _study(lexical: LexicalJudge, request: JudgeRequest) -> Studied | None:
    return lexical.study(request) if any(chunk.text.strip() for chunk in request.contexts) else None


def statement_of(text: str) -> Sentence:
    return read_sentence(text, fold(text), 0, len(text))


def question_of(request: JudgeRequest, studied: Studied) -> Question:
    return Question(
        studied.sources,
        studied.passages,
        studied.index,
        [statement_of(s.text) for s in request.statements],
        [in_the_light_of(request.question, s.text) for s in request.statements],
    )


def _evidence(held: Held | None, k: int, request: JudgeRequest, studied: Studied) -> tuple[Evidence, ...]:
    """The sentence of the window that holds most of the statement; the window where no word is shared."""
    if held is None:
        return ()
    source = held.placed.source
    start, end = held.placed.window.start, held.placed.window.end
    single = [Placed(source, held.placed.window, (s,)) for s in held.placed.sentences]
    shares = coverages(statement_of(request.statements[k].text), studied.index, single)
    if shares and max(shares) > 0 and len(single) > 1:
        sentence = held.placed.sentences[shares.index(max(shares))]
        start, end = sentence.start, sentence.end
    quote = studied.sources[source][start:end]
    if source < len(request.contexts):
        return (Evidence(source, request.contexts[source].id, start, end, quote),)
    return (Evidence(None, f"conversation[{source - len(request.contexts)}]", start, end, quote),)
