"""What an event leaves an LLM judge nothing to do about; known without asking it."""

from __future__ import annotations

from collections.abc import Iterable

from metrics import faithfulness
from metrics.blank import is_blank
from metrics.evaluation import Judged
from metrics.event import Event
from metrics.llm.names import ANSWER_RELEVANCE, CONTEXT_PRECISION, CONTEXT_RECALL, CONTEXT_RELEVANCE, FAITHFULNESS
from metrics.llm.retrieval import missing_for_retrieval
from metrics.outcome import Reason, Unscored
from metrics.statements import claims_of


def inapplicable(event: Event, judged: Judged | None, metrics: Iterable[str]) -> dict[str, Unscored]:
    """Those of `metrics` that do not apply to the event, with the reason; the judge would say the same.

    They take no room at the judge and none of its budget, and do not count as failed where it is busy. `judged` is that
    of the local part: without a statement faithfulness is not defined.
    """
    found: dict[str, Unscored] = {}
    for metric in metrics:
        reason: Unscored | None = None
        if metric in (FAITHFULNESS, ANSWER_RELEVANCE) and is_blank(event.answer):
            reason = Unscored(Reason.EMPTY_ANSWER)
        elif metric == FAITHFULNESS and (judged is None or not judged.statements):
            request = faithfulness.ask(event).request
            reason = request if isinstance(request, Unscored) else None
        elif metric == FAITHFULNESS and all(is_blank(chunk.text) for chunk in event.contexts):
            reason = Unscored(Reason.NO_CONTEXT)
        elif metric == ANSWER_RELEVANCE and is_blank(event.question):
            reason = Unscored(Reason.NO_QUESTION)
        elif metric == ANSWER_RELEVANCE and (
            only_refuses(event.answer) if judged is None else judged.refusal and not judged.statements
        ):
            reason = Unscored(Reason.EVASIVE)
        elif metric in (CONTEXT_PRECISION, CONTEXT_RECALL) and is_blank(event.reference):
            reason = Unscored(Reason.NO_REFERENCE)
        elif metric in (CONTEXT_PRECISION, CONTEXT_RECALL, CONTEXT_RELEVANCE):
            reason = missing_for_retrieval(event.contexts, event.question)
        if reason is not None:
            found[metric] = reason
    return found


def only_refuses(answer: str | None) -> bool:
    """The answer says that it cannot answer, and claims nothing: no question can be made back from it.

    >>> only_refuses("I could not find that in the documents."), only_refuses("I don't know, but returns are free.")
    (True, False)
    """
    claims = claims_of(answer)
    return claims.refusal and not claims.statements
