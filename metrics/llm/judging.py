"""The RAGAS metrics by a chat model (Es et al., arXiv:2309.15217): one event in, one outcome a metric out."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from metrics import faithfulness
from metrics.blank import is_blank
from metrics.evaluation import Judged, RemoteResult
from metrics.event import Event
from metrics.judge import Judge, Judgement, Statement, Verdict
from metrics.language import language_of
from metrics.lexical.judge import LexicalJudge
from metrics.llm import relevance, retrieval
from metrics.llm.asking import Session, Unjudged
from metrics.llm.chat import Chat
from metrics.llm.injection import fence, suspicious_spans
from metrics.llm.names import (
    ANSWER_RELEVANCE,
    CONTEXT_PRECISION,
    CONTEXT_RECALL,
    CONTEXT_RELEVANCE,
    FAITHFULNESS,
    METRICS,
)
from metrics.llm.passages import Embed, rank, sources_of
from metrics.llm.prompts import PromptBook
from metrics.llm.splitting import claiming, resplit
from metrics.llm.verdict_cache import NoCache, VerdictCache
from metrics.llm.verdicts import Held, verdicts_of
from metrics.metric import definition
from metrics.outcome import Outcome, Reason, Unscored
from metrics.statements import claims_of

log = logging.getLogger(__name__)

BOUNDS = (0.0, 1.0)
METHOD = "llm/1"
"""Version of how verdicts are asked for, beside the prompts: choice of passages, reading of replies, combination."""
LATIN = ("en", "other")
"""What `metrics.language.language_of` says of any text in Latin script, or of none."""
_FORMULAS = {
    FAITHFULNESS: faithfulness.FORMULA,
    ANSWER_RELEVANCE: relevance.FORMULA,
    CONTEXT_PRECISION: retrieval.PRECISION_FORMULA,
    CONTEXT_RECALL: retrieval.RECALL_FORMULA,
    CONTEXT_RELEVANCE: retrieval.RELEVANCE_FORMULA,
}


@dataclass(frozen=True, slots=True)
class Options:
    """How an LLM judge works; all of it is part of the definitions."""

    metrics: tuple[str, ...] = (FAITHFULNESS,)
    """Some of `METRICS`; context precision and recall only together."""
    splitting: Literal["rules", "llm"] = "rules"
    """Who splits an answer into statements: the project's own rules, or the model (one call more)."""
    statements_per_call: int = 1
    passage_tokens: int = 3000
    """Most tokens of passages in one call, by estimate; what matters beyond it goes into further calls."""
    cross_check: bool = True
    """Where model and rules disagree on a statement, ask the model once more, the other way round: two of three."""
    questions: int = 3
    """Questions made from an answer for answer relevance, 1 to 8."""


@dataclass(frozen=True, slots=True)
class _Faithful:
    """Faithfulness of one event, as far as it came."""

    outcome: Outcome
    statements: tuple[Statement, ...]
    verdicts: tuple[Verdict, ...]
    refusal: bool


class LlmJudging:
    """Fulfils `metrics.evaluation.Remote`. Safe to use from several threads: it keeps nothing between calls."""

    def __init__(
        self,
        chat: Chat,
        embed: Embed,
        book: PromptBook,
        *,
        embedder_identity: str,
        cache: VerdictCache | None = None,
        options: Options | None = None,
        rules: Judge | None = None,
    ) -> None:
        """
        Args:
            embed: Safe to call from the thread that `judge` runs in.
            embedder_identity: Part of the definitions: answer relevance is a cosine, and passages are chosen by one.
            rules: The judge without a model that says where a second look is worth a call; the lexical one by default.

        Raises:
            ValueError: options that make no sense.
        """
        self._options = options or Options()
        _check(self._options)
        self._chat = chat
        self._embed = embed
        self._book = book
        self._cache = cache or NoCache()
        self._rules = rules or LexicalJudge()
        o = self._options
        self.identity = (
            f"{METHOD}/{chat.model}/{book.version}/split={o.splitting}/per_call={o.statements_per_call}/cross={o.cross_check}"
            f"/passages={o.passage_tokens}/{self._rules.identity}"
        )
        self.definitions: Mapping[str, str] = {
            metric: definition(
                _FORMULAS[metric],
                self.identity,
                embedder_identity,
                str(o.questions) if metric == ANSWER_RELEVANCE else "",
            )
            for metric in o.metrics
        }
        self.bounds: Mapping[str, tuple[float, float]] = dict.fromkeys(o.metrics, BOUNDS)

    @property
    def model(self) -> str:
        return self._chat.model

    @property
    def prompts_version(self) -> str:
        """Goes into `versions.prompts` of every record."""
        return self._book.version

    def judge(self, event: Event, wanted: frozenset[str]) -> RemoteResult:
        """Outcomes of the metrics in `wanted`. Blocks for as long as the chat takes; never raises."""
        names = [metric for metric in self._options.metrics if metric in wanted]
        if not names:
            return RemoteResult({})
        try:
            return self._judge(event, names)
        except Exception:
            log.exception("judging an answer failed")
            return RemoteResult({metric: Unscored(Reason.INTERNAL_ERROR) for metric in names})

    def _judge(self, event: Event, names: list[str]) -> RemoteResult:
        texts = _texts(event)
        session = Session(self._chat, self._book.of(self._language(event)), self._cache, fence(texts))
        outcomes: dict[str, Outcome] = {}
        faithful = None
        evasive = False
        if FAITHFULNESS in names:
            faithful = self._faithfulness(event, session)
            outcomes[FAITHFULNESS] = faithful.outcome
        if ANSWER_RELEVANCE in names:
            found = _guarded(
                lambda: relevance.answer_relevance(
                    session,
                    event.question,
                    event.answer,
                    count=self._options.questions,
                    language=_question_language(event),
                    embed=self._embed,
                )
            )
            outcomes[ANSWER_RELEVANCE] = found if isinstance(found, Unscored) else found.outcome
            evasive = not isinstance(found, Unscored) and found.evasive
        if CONTEXT_PRECISION in names or CONTEXT_RECALL in names:
            pair = dict(zip((CONTEXT_PRECISION, CONTEXT_RECALL), self._against_reference(event, session), strict=True))
            outcomes |= {metric: pair[metric] for metric in pair if metric in names}
        if CONTEXT_RELEVANCE in names:
            outcomes[CONTEXT_RELEVANCE] = self._context_relevance(event, session)
        judged = Judged(
            faithful.statements if faithful else (),
            faithful.verdicts if faithful else (),
            faithful.refusal if faithful else False,
            session.cost,
            evasive,
            any(suspicious_spans(text) for text in texts),
            tuple(session.unread),
        )
        return RemoteResult({metric: outcomes[metric] for metric in names}, judged)

    def _faithfulness(self, event: Event, session: Session) -> _Faithful:
        asked = faithfulness.ask(event)
        statements = claiming(event.answer or "", asked.claims.statements)
        if isinstance(asked.request, Unscored):
            return _Faithful(asked.request, statements, (), asked.claims.refusal)
        if not statements:
            return _Faithful(Unscored(Reason.NO_CLAIMS), (), (), asked.claims.refusal)
        try:
            if self._options.splitting == "llm":
                statements = resplit(session, statements, event.question or "", event.conversation)
            verdicts = verdicts_of(session, statements, self._held(event, asked.request.conversation))
        except Unjudged as failed:
            return _Faithful(Unscored(failed.reason), statements, (), asked.claims.refusal)
        outcome = faithfulness.faithfulness(statements, Judgement(verdicts))
        return _Faithful(outcome, statements, verdicts, asked.claims.refusal)

    def _against_reference(self, event: Event, session: Session) -> tuple[Outcome, Outcome]:
        """Context precision and recall: both have a value, or both the first reason why there is none."""
        if event.reference is None or is_blank(event.reference):
            missing: Unscored | None = Unscored(Reason.NO_REFERENCE)
        else:
            missing = retrieval.missing_for_retrieval(event.contexts, event.question)
        if missing is not None:
            return missing, missing
        reference = event.reference or ""
        statements = claiming(reference, claims_of(reference).statements) or _as_one(reference)
        try:
            verdicts = verdicts_of(session, statements, self._held(event, ()))
            useful = retrieval.useful_chunks(
                session, event.contexts, event.question or "", reference, self._options.passage_tokens
            )
        except Unjudged as failed:
            return Unscored(failed.reason), Unscored(failed.reason)
        pair = retrieval.context_precision(useful), retrieval.context_recall(verdicts)
        failure = next((one for one in pair if isinstance(one, Unscored)), None)
        return pair if failure is None else (failure, failure)

    def _context_relevance(self, event: Event, session: Session) -> Outcome:
        missing = retrieval.missing_for_retrieval(event.contexts, event.question)
        if missing is not None:
            return missing
        try:
            useful = retrieval.useful_chunks(
                session, event.contexts, event.question or "", None, self._options.passage_tokens
            )
        except Unjudged as failed:
            return Unscored(failed.reason)
        return retrieval.context_relevance(useful)

    def _language(self, event: Event) -> str:
        """Which prompts an event gets: those of its label where there are such, else by the script of the answer."""
        labelled = _label(event)
        if labelled in self._book.sets:
            return labelled
        return language_of(event.question if is_blank(event.answer) else event.answer)

    def _held(self, event: Event, turns: tuple[str, ...]) -> Held:
        sources = sources_of(event.contexts, turns)
        return Held(
            event.question or "",
            sources,
            rank(sources, self._embed),
            self._embed,
            self._options.statements_per_call,
            self._options.passage_tokens,
            self._rules,
            self._options.cross_check,
        )


def _guarded(ask: Callable[[], relevance.Relevance]) -> relevance.Relevance | Unscored:
    try:
        return ask()
    except Unjudged as failed:
        return Unscored(failed.reason)


def _check(options: Options) -> None:
    unknown = [metric for metric in options.metrics if metric not in METRICS]
    if unknown:
        raise ValueError(f"an LLM judge has no metric {unknown[0]!r}; known: {', '.join(METRICS)}")
    if len({CONTEXT_PRECISION, CONTEXT_RECALL}.intersection(options.metrics)) == 1:
        raise ValueError(f"{CONTEXT_PRECISION} and {CONTEXT_RECALL} are scored together or not at all")
    if not 1 <= options.questions <= 8:
        raise ValueError(f"questions is 1 to 8, found {options.questions}")
    if options.statements_per_call < 1 or options.passage_tokens < 200:
        raise ValueError("statements_per_call is at least 1, passage_tokens at least 200")


def _texts(event: Event) -> list[str]:
    """Everything of an event that a judge may see."""
    turns = [turn.content for turn in event.conversation]
    texts = [event.question, event.answer, event.reference, *(chunk.text for chunk in event.contexts), *turns]
    return [text for text in texts if text]


def _label(event: Event) -> str:
    """`pt` of `pt-BR` and `pt_BR`."""
    return re.split(r"[-_]", event.labels.get("lang", ""))[0].lower()


def _question_language(event: Event) -> str:
    """The language that questions are made in: that of the asked one.

    A Latin script alone does not tell which: then the label says, or else it is the answer's own language (""), if that
    is written in Latin script too.
    """
    script = language_of(event.question)
    if script not in LATIN:
        return script
    labelled = _label(event)
    if labelled and language_of(event.answer) in LATIN:
        return labelled
    return "" if language_of(event.answer) in LATIN else "en"


def _as_one(reference: str) -> tuple[Statement, ...]:
    """A reference that is no sentence («26 days») is one statement all the same."""
    text = " ".join(reference.split())
    return (Statement(text, 0, len(reference)),)
