"""What the retrieved passages are worth: precision and recall against a reference, relevance without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metrics.blank import is_blank
from metrics.event import Chunk
from metrics.judge import Label, Verdict
from metrics.llm.asking import Session, list_schema
from metrics.llm.passages import Piece, packed, pieces_of, sources_of
from metrics.llm.replies import truth_of
from metrics.outcome import Outcome, Reason, Unscored, bounded

PRECISION_FORMULA = "context_precision/mean-precision-at-k/1"
RECALL_FORMULA = "context_recall/attributable-share/1"
RELEVANCE_FORMULA = "context_relevance/useful-share/1"
TOKENS_EACH = 20
"""Completion tokens for one passage."""
PASSAGES_PER_CALL = 10


def useful_chunks(
    session: Session, contexts: Sequence[Chunk], question: str, reference: str | None, passage_tokens: int
) -> list[bool | None]:
    """Whether each chunk helps to answer the question (to come to the reference, where there is one); None for a chunk
    without text. A chunk that needs several calls helps where one of its parts does.

    Raises:
        Unjudged: the judge gave no usable reply.
    """
    pieces = pieces_of(sources_of(contexts, ()), passage_tokens)
    found: list[bool | None] = [None] * len(contexts)
    for call in packed(pieces, passage_tokens):
        for at in range(0, len(call), PASSAGES_PER_CALL):
            part = call[at : at + PASSAGES_PER_CALL]
            for piece, useful in zip(part, _ask(session, part, question, reference), strict=True):
                found[piece.source] = bool(found[piece.source]) or useful
    return found


def _ask(session: Session, pieces: Sequence[Piece], question: str, reference: str | None) -> list[bool]:
    prompt = "useful" if reference is None else "useful_for_reference"
    given = {"question": question} if reference is None else {"question": question, "reference": reference}
    keys = [session.key(prompt, question, reference or "", piece.shown) for piece in pieces]
    useful = [entry if isinstance(entry, bool) else None for entry in session.known(keys)]
    missing = [k for k, known in enumerate(useful) if known is None]
    if missing:

        def values(wanted: Sequence[int]) -> Mapping[str, str]:
            lines = [f"[{n}] {pieces[missing[k]].shown}" for n, k in enumerate(wanted, start=1)]
            return {**given, "passages": "\n".join(lines)}

        new = session.several(
            prompt,
            values,
            len(missing),
            key="passages",
            needed="useful",
            schema=lambda count: list_schema("passages", count, useful={"type": "boolean"}),
            tokens_each=TOKENS_EACH,
            read=_useful,
        )
        for k, one in zip(missing, new, strict=True):
            useful[k] = one
        session.keep({keys[k]: one for k, one in zip(missing, new, strict=True)})
    return [one is True for one in useful]


def _useful(item: Mapping[str, Any]) -> bool | None:
    return truth_of(item.get("useful"))


def context_precision(useful: Sequence[bool | None]) -> Outcome:
    """Mean of precision@k over the ranks k at which a chunk helps, in [0, 1]; 0 where none does (RAGAS). Chunks without
    text are left out of the ranking.

    >>> context_precision([True, False, True])
    Scored(value=0.8333333333333333, per_chunk=(1.0, 0.0, 1.0))
    """
    ranks = [one for one in useful if one is not None]
    if not ranks:
        return Unscored(Reason.NO_CONTEXT)
    precisions = [sum(ranks[: k + 1]) / (k + 1) for k, helps in enumerate(ranks) if helps]
    return bounded(sum(precisions) / len(precisions) if precisions else 0.0, 0.0, 1.0, _per_chunk(useful))


def context_recall(verdicts: Sequence[Verdict]) -> Outcome:
    """Share of the reference's statements that the contexts support, in [0, 1]."""
    if not verdicts:
        return Unscored(Reason.NO_CLAIMS)
    return bounded(sum(v.label is Label.SUPPORTED for v in verdicts) / len(verdicts), 0.0, 1.0)


def context_relevance(useful: Sequence[bool | None]) -> Outcome:
    """Share of the chunks with text that help to answer the question, in [0, 1].

    >>> context_relevance([True, None, False]).value
    0.5
    """
    known = [one for one in useful if one is not None]
    if not known:
        return Unscored(Reason.NO_CONTEXT)
    return bounded(sum(known) / len(known), 0.0, 1.0, _per_chunk(useful))


def _per_chunk(useful: Sequence[bool | None]) -> tuple[float | None, ...]:
    return tuple(None if one is None else float(one) for one in useful)


def missing_for_retrieval(contexts: Sequence[Chunk], question: str | None) -> Unscored | None:
    """Why the passages cannot be judged: no_context, no_question."""
    if all(is_blank(chunk.text) for chunk in contexts):
        return Unscored(Reason.NO_CONTEXT)
    return Unscored(Reason.NO_QUESTION) if is_blank(question) else None
