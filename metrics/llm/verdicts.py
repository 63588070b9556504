"""A verdict on every statement of an answer: which passages it is held against, what is asked, how several replies
become one verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from metrics.event import Chunk
from metrics.judge import Evidence, Judge, JudgeRequest, Label, Statement, Verdict
from metrics.llm.asking import Session, list_schema, object_schema
from metrics.llm.passages import Embed, Piece, Ranked, Source, chosen, packed, shown
from metrics.llm.quotes import evidence_of
from metrics.llm.replies import label_of, last_object, problem_of, text_of, truth_of
from metrics.outcome import Unscored

TOKENS_EACH = 120
"""Completion tokens for one verdict with its reason and quote."""
MOST_CALLS = 30
"""Of an answer with more statements than this, several go into one call; cross-checks are at most as many."""
SUPPORTED_PROBABILITY = {Label.SUPPORTED: 0.9, Label.NOT_FOUND: 0.1, Label.CONTRADICTED: 0.1}
"""A chat model gives a label and no probability."""
UNSURE = {Label.SUPPORTED: 0.6, Label.NOT_FOUND: 0.4, Label.CONTRADICTED: 0.4}
"""The same where only two of three voices agree."""
CONTESTED = 2
"""Passages of other chunks, at most, that are asked about apart because a rule finds the opposite in them."""
SURE = 0.65
"""Probability from which a rule's «supported» in another chunk is worth a question."""

_TEXT = {"type": "string"}
_VERDICT = {"type": "string", "enum": [label.value for label in Label]}
_SCHEMA_ONE = object_schema(reason=_TEXT, verdict=_VERDICT, quote=_TEXT)
_SCHEMA_DOUBT = object_schema(detail=_TEXT, problem={"type": "string", "enum": ["missing", "different", "none"]})
_SCHEMA_CONFIRM = object_schema(quote=_TEXT, found={"type": "boolean"})
_PRONOUN = re.compile(
    r"\b(?:it|its|they|their|them|he|him|his|she|her|this|that|these|those|both|such|there|then|so)\b|[它他她此该其这那]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """What one reply says about one statement."""

    label: Label
    reason: str
    quote: str


@dataclass(frozen=True, slots=True)
class Held:
    """Everything that statements are held against."""

    question: str
    sources: tuple[Source, ...]
    ranked: Ranked
    embed: Embed
    statements_per_call: int
    passage_tokens: int
    rules: Judge
    """A judge without a model: says where a second look is worth a call, and votes there."""
    cross_check: bool
    """Ask the reversed question where model and rules disagree; the majority of the three wins."""


def verdicts_of(session: Session, statements: Sequence[Statement], held: Held) -> tuple[Verdict, ...]:
    """One verdict a statement, in order.

    Raises:
        Unjudged: the judge gave no usable reply for some statement.
    """
    by_rule = _by_rule(statements, held)
    checks = MOST_CALLS if held.cross_check else 0
    verdicts: list[Verdict] = []
    step = max(held.statements_per_call, -(-len(statements) // MOST_CALLS))
    for at in range(0, len(statements), step):
        group = range(at, min(at + step, len(statements)))
        for k, (verdict, call) in zip(group, _group(session, statements, group, held), strict=True):
            if by_rule and _disagree(verdict, by_rule[k]):
                if checks:
                    checks -= 1
                    verdict = _cross_checked(session, statements, k, verdict, by_rule[k], call, held)
            elif by_rule and verdict.label is by_rule[k].label and not verdict.evidence:
                verdict = replace(verdict, evidence=by_rule[k].evidence)
            verdicts.append(_contested(session, statements[k], verdict, held))
    return tuple(verdicts)


def _by_rule(statements: Sequence[Statement], held: Held) -> tuple[Verdict, ...]:
    """What the rules say of every statement; nothing where they cannot."""
    chunks = tuple(Chunk(source.safe, source.name) for source in held.sources if source.chunk is not None)
    turns = tuple(source.safe for source in held.sources if source.chunk is None)
    (judgement,) = held.rules.judge([JudgeRequest(held.question, tuple(statements), chunks, turns)])
    if isinstance(judgement, Unscored):
        return ()
    return tuple(
        replace(v, evidence=tuple(_as_written(e, held.sources) for e in v.evidence)) for v in judgement.verdicts
    )


def _as_written(evidence: Evidence, sources: Sequence[Source]) -> Evidence:
    """Evidence whose quote was taken of a safe text, with the words that really stand there."""
    (source,) = (
        s for s in sources if s.chunk == evidence.chunk and (s.chunk is not None or s.name == evidence.chunk_id)
    )
    return replace(evidence, quote=source.text[evidence.start : evidence.end])


def _disagree(verdict: Verdict, rule: Verdict) -> bool:
    """Whether only one of the two says supported; a conflict has both sides already."""
    return not verdict.conflict and (verdict.label is Label.SUPPORTED) is not (rule.label is Label.SUPPORTED)


def _group(
    session: Session, statements: Sequence[Statement], group: range, held: Held
) -> list[tuple[Verdict, Sequence[Piece]]]:
    """Verdicts of the model on these statements, each with the passages that it rests on."""
    texts = [statements[at].text for at in group]
    matter = {p for text in texts for p in chosen(held.ranked, text, held.question, held.embed)}
    calls = packed([p for p in held.ranked.pieces if p in matter], held.passage_tokens)
    before = [_before(statements, at) for at in group]
    replies = [_ask(session, texts, before, call, held) for call in calls]
    return [
        _combined([(said[k], call) for said, call in zip(replies, calls, strict=True)], held.sources)
        for k in range(len(texts))
    ]


def _before(statements: Sequence[Statement], at: int) -> str:
    """What a pronoun of the statement may stand for: the statement before it."""
    return statements[at - 1].text if at and _PRONOUN.search(statements[at].text) else ""


def _ask(
    session: Session, texts: Sequence[str], before: Sequence[str], pieces: Sequence[Piece], held: Held
) -> list[Said]:
    passages = shown(pieces)
    prompt = "verdict" if len(texts) == 1 else "verdicts"
    keys = [
        session.key(prompt, text, earlier, held.question, passages) for text, earlier in zip(texts, before, strict=True)
    ]
    said = [_said(entry) for entry in session.known(keys)]
    missing = [k for k, found in enumerate(said) if found is None]
    if missing:
        given = {"passages": passages, "question": held.question}
        if len(missing) == 1:
            k = missing[0]
            new = [_ask_one(session, {**given, "claim": texts[k], "before": before[k]})]
        else:
            new = _ask_several(session, given, [texts[k] for k in missing])
        for k, one in zip(missing, new, strict=True):
            said[k] = one
        session.keep({keys[k]: _entry(one) for k, one in zip(missing, new, strict=True)})
    return [one for one in said if one is not None]


def _ask_one(session: Session, values: Mapping[str, str]) -> Said:
    return session.one(
        "verdict",
        values,
        schema=_SCHEMA_ONE,
        max_tokens=TOKENS_EACH + 40,
        read=lambda text: _said(last_object(text, "verdict")),
    )


def _ask_several(session: Session, given: Mapping[str, str], texts: Sequence[str]) -> list[Said]:
    def values(wanted: Sequence[int]) -> Mapping[str, str]:
        return {**given, "claims": "\n".join(f"{n}. {texts[k]}" for n, k in enumerate(wanted, start=1))}

    return session.several(
        "verdicts",
        values,
        len(texts),
        key="claims",
        needed="verdict",
        schema=lambda count: list_schema("claims", count, reason=_TEXT, verdict=_VERDICT, quote=_TEXT),
        tokens_each=TOKENS_EACH,
        read=_said,
    )


def _said(entry: Any) -> Said | None:
    """Of a reply or of the cache; None where it is no verdict."""
    if not isinstance(entry, Mapping):
        return None
    label = label_of(entry.get("verdict"))
    return None if label is None else Said(label, text_of(entry.get("reason")), text_of(entry.get("quote")))


def _entry(said: Said) -> dict[str, str]:
    return {"verdict": said.label.value, "reason": said.reason, "quote": said.quote}


def _combined(
    replies: Sequence[tuple[Said, Sequence[Piece]]], sources: Sequence[Source]
) -> tuple[Verdict, Sequence[Piece]]:
    """Supported where some passages support, though others may contradict (a conflict then); contradicted where some
    contradict; else not found."""
    labels = [said.label for said, _ in replies]
    label = next((one for one in (Label.SUPPORTED, Label.CONTRADICTED) if one in labels), Label.NOT_FOUND)
    conflict = label is Label.SUPPORTED and Label.CONTRADICTED in labels
    telling = [reply for reply in replies if reply[0].label is label]
    if conflict:
        telling = [*telling[:1], *(reply for reply in replies if reply[0].label is Label.CONTRADICTED)][:2]
    evidence: list[Evidence] = []
    for said, pieces in telling:
        evidence += evidence_of(said.quote, pieces, sources)
    reason = " / ".join(dict.fromkeys(said.reason for said, _ in telling if said.reason))
    verdict = Verdict(label, reason or label.value, tuple(evidence), SUPPORTED_PROBABILITY[label], conflict)
    return verdict, telling[0][1]


def _cross_checked(
    session: Session,
    statements: Sequence[Statement],
    at: int,
    verdict: Verdict,
    rule: Verdict,
    pieces: Sequence[Piece],
    held: Held,
) -> Verdict:
    """The verdict by two of three: the model, the rules, and the model on a question that leans the other way.

    The third is asked for only where the first two disagree: after a yes, for a detail that the passages lack; after a
    no, for the words that say it. A model that stays with what it said cannot be
    overruled by the rules; one that says yes to everything, or no, is.
    """
    yes = verdict.label is Label.SUPPORTED
    asked = "doubt" if yes else "confirm"
    again = _again(session, asked, statements[at].text, _before(statements, at), pieces, held)
    if yes is (again.label is Label.SUPPORTED):
        return verdict
    if not yes:
        evidence = evidence_of(again.quote, pieces, held.sources) or rule.evidence
        return Verdict(Label.SUPPORTED, rule.reason, evidence, UNSURE[Label.SUPPORTED])
    label = again.label if rule.label is Label.NOT_FOUND else rule.label
    reason = " / ".join(r for r in (again.reason, rule.reason) if r)
    return Verdict(label, reason, rule.evidence, UNSURE[label])


def _again(session: Session, prompt: str, text: str, before: str, pieces: Sequence[Piece], held: Held) -> Said:
    """What the model says to the question that leans the other way: `doubt` or `confirm`."""
    passages = shown(pieces)
    key = session.key(prompt, text, before, held.question, passages)
    (known,) = session.known([key])
    said = _said(known)
    if said is None:
        said = session.one(
            prompt,
            {"passages": passages, "question": held.question, "before": before, "claim": text},
            schema=_SCHEMA_DOUBT if prompt == "doubt" else _SCHEMA_CONFIRM,
            max_tokens=TOKENS_EACH + 40,
            read=_doubted if prompt == "doubt" else _confirmed,
        )
        session.keep({key: _entry(said)})
    return said


def _doubted(text: str) -> Said | None:
    entry = last_object(text, "problem")
    label = problem_of(entry["problem"]) if entry else None
    if entry is None or label is None:
        return None
    detail = text_of(entry.get("detail"))
    if label is Label.SUPPORTED or problem_of(detail) is Label.SUPPORTED:
        return Said(Label.SUPPORTED, "", "")  # «different: none» names nothing
    return Said(label, detail, "")


def _confirmed(text: str) -> Said | None:
    entry = last_object(text, "found")
    found = truth_of(entry["found"]) if entry else None
    if entry is None or found is None:
        return None
    return Said(Label.SUPPORTED if found else Label.NOT_FOUND, "", text_of(entry.get("quote")))


def _contested(session: Session, statement: Statement, verdict: Verdict, held: Held) -> Verdict:
    """Where several chunks were shown in one call and a rule finds the opposite of the verdict in another chunk, that
    chunk is asked about alone: one that supports and one that contradicts are a conflict."""
    if verdict.conflict or verdict.label is Label.NOT_FOUND or len(verdict.evidence) != 1:
        return verdict
    opposite = Label.CONTRADICTED if verdict.label is Label.SUPPORTED else Label.SUPPORTED
    cited = verdict.evidence[0]
    places = [at for at, s in enumerate(held.sources) if (s.chunk, s.name) != (cited.chunk, cited.chunk_id)]
    for at in [at for at in places if _finds(held, at, statement, opposite)][:CONTESTED]:
        pieces = [p for p in chosen(held.ranked, statement.text, held.question, held.embed) if p.source == at]
        for call in packed(pieces, held.passage_tokens):
            (said,) = _ask(session, [statement.text], [""], call, held)
            if said.label is opposite:
                other = evidence_of(said.quote, call, held.sources)
                both = (*verdict.evidence, *other) if verdict.label is Label.SUPPORTED else (*other, *verdict.evidence)
                reason = " / ".join(r for r in (verdict.reason, said.reason) if r)
                probability = SUPPORTED_PROBABILITY[Label.SUPPORTED]
                return replace(
                    verdict, label=Label.SUPPORTED, reason=reason, evidence=both, probability=probability, conflict=True
                )
    return verdict


def _finds(held: Held, at: int, statement: Statement, label: Label) -> bool:
    """Whether the rules, given this source alone, come to this label."""
    request = JudgeRequest(held.question, (statement,), (Chunk(held.sources[at].safe),))
    (judgement,) = held.rules.judge([request])
    if isinstance(judgement, Unscored):
        return False
    (found,) = judgement.verdicts
    return found.label is label and (label is Label.CONTRADICTED or found.probability >= SURE)
