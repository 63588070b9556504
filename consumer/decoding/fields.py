"""The fields of an event, read out of one record by one form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from consumer.decoding.mapping import Form, View
from consumer.decoding.prompts import split_prompt
from consumer.decoding.reasons import DecodeError, Refusal, Repair
from consumer.decoding.scalars import label_text, read_feedback, read_id, read_labels, read_time
from consumer.decoding.shapes import chunks_of
from consumer.decoding.turns import answer_of, question_of, text_of, turns_of
from metrics.event import Chunk, Turn

_ADDRESS = re.compile(
    r"(?:https?|s3|gs|file)://\S+|[^\s]{1,200}\.(?:pdf|docx?|html?|md|txt|csv|pptx?|xlsx?|json)", re.IGNORECASE
)


@dataclass(slots=True)
class Draft:
    """What a form read; `id` and `timestamp` are None where the record has none."""

    question: str | None = None
    contexts: tuple[Chunk, ...] = ()
    answer: str | None = None
    reference: str | None = None
    id: str | None = None
    timestamp: float | None = None
    trace_id: str | None = None
    conversation: tuple[Turn, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    feedback: float | None = None
    repairs: list[str] = field(default_factory=list)


class Absent(DecodeError):
    """A required field that this form did not find; `found` names the ones that it did find."""

    def __init__(self, reason: Refusal, detail: str, found: tuple[str, ...]) -> None:
        super().__init__(reason, detail)
        self.found = found


def read_fields(form: Form, view: View, max_chunks: int) -> Draft:
    """Every field that `form` names.

    Raises:
        Absent: contexts or answer are not there.
        DecodeError: they are there in a shape that cannot be read, or there are too many contexts.
    """
    draft = Draft()
    repairs = draft.repairs
    has_question = _question(form, view, draft)
    has_answer = _answer(form, view, draft)
    has_contexts = _contexts(form, view, draft, max_chunks)
    found = tuple(
        name
        for name, there in (("question", has_question), ("contexts", has_contexts), ("answer", has_answer))
        if there
    )
    if not has_contexts:
        raise Absent(
            Refusal.INCOMPLETE_CONTEXTS if form.trace else Refusal.MISSING_CONTEXTS,
            _missing(form, "contexts", "one record must carry question, contexts and answer"), found,
        )  # fmt: skip
    if not has_answer:
        raise Absent(
            Refusal.INCOMPLETE_ANSWER if form.trace else Refusal.MISSING_ANSWER,
            _missing(form, "answer", "log the event after the answer is there"), found,
        )  # fmt: skip
    draft.reference = _reference(form, view, repairs)
    draft.id = _first_id(form, view, repairs)
    draft.timestamp = _first_time(form, view, repairs)
    quiet: list[str] = []
    draft.trace_id = next((i for _, v in form.candidates("trace_id", view) if (i := read_id(v, quiet))), None)
    _conversation(form, view, draft)
    for there, value in form.candidates("feedback", view):
        if there and value is not None:
            draft.feedback = read_feedback(value, repairs)
            break
    draft.labels = _labels(form, view, repairs)
    return draft


def _missing(form: Form, name: str, advice: str) -> str:
    looked = ", ".join(expression.text for expression in form.fields[name][:6])
    more = ", ..." if len(form.fields[name]) > 6 else ""
    return f"form {form.name} found no {name} (it looks at {looked}{more}); {advice}"


def _question(form: Form, view: View, draft: Draft) -> bool:
    seen = False
    for there, value in form.candidates("question", view):
        seen = seen or there
        if value is None:
            continue
        read = question_of(value, draft.repairs)
        if read is not None and read[0]:
            draft.question, draft.conversation = read
            return True
        if read is not None:
            draft.question = draft.question or read[0]
    return seen


def _answer(form: Form, view: View, draft: Draft) -> bool:
    seen, unreadable = False, False
    for there, value in form.candidates("answer", view):
        seen = seen or there
        if value is None:
            continue
        text = answer_of(value, draft.repairs)
        if text and form.anywhere and text == draft.question:
            continue
        if text:
            draft.answer = text
            return True
        if text is None:
            unreadable = True
        elif draft.answer is None:
            draft.answer = text
    if unreadable and draft.answer is None:
        if form.anywhere or len(form.fields["answer"]) > 1:
            return False
        raise DecodeError(
            Refusal.BAD_ANSWER_SHAPE, f"form {form.name} found an answer that is neither text, parts nor a message"
        )
    return seen


def _contexts(form: Form, view: View, draft: Draft, max_chunks: int) -> bool:
    seen, null_seen, bad = False, False, None
    for there, value in form.candidates("contexts", view):
        if not there or value is None:
            null_seen = null_seen or there
            continue
        noted: list[str] = []
        try:
            chunks = chunks_of(value, noted, max_chunks=max_chunks)
        except DecodeError as error:
            if error.reason != Refusal.BAD_CONTEXT_SHAPE:
                raise
            bad = bad or error
            continue
        if chunks and all(_ADDRESS.fullmatch(chunk.text) for chunk in chunks):
            bad = bad or DecodeError(
                Refusal.BAD_CONTEXT_SHAPE, "addresses of documents, not their text; log the passages"
            )
            continue
        seen = True
        if chunks:
            draft.repairs += noted
            draft.contexts = _once(chunks, draft.repairs) if form.unique else tuple(chunks)
            return True
    if _from_prompt(form, view, draft):
        return True
    if bad is not None and not seen:
        raise bad
    if null_seen and not seen:
        draft.repairs.append(Repair.NULL_CONTEXTS)
    return seen or null_seen


def _once(chunks: list[Chunk], repairs: list[str]) -> tuple[Chunk, ...]:
    kept: dict[str, Chunk] = {}
    for chunk in chunks:
        if chunk.text in kept:
            repairs.append(Repair.REPEATED_CHUNK)
        else:
            kept[chunk.text] = chunk
    return tuple(kept.values())


def _from_prompt(form: Form, view: View, draft: Draft) -> bool:
    """Passages that were pasted into a prompt: in the last user message first, then in what stands before it."""
    for _, value in form.candidates("prompt", view):
        if value is None:
            continue
        turns = turns_of(value, [])
        texts = [value] if isinstance(value, str) else [turn.content for turn in reversed(turns or [])]
        if not texts and (alone := text_of(value, [])):
            texts = [alone]
        for text in texts:
            split = split_prompt(text, draft.repairs)
            if split is not None:
                question, passages = split
                draft.contexts = tuple(Chunk(passage) for passage in passages)
                if question and (draft.question is None or question in draft.question):
                    draft.question = question
                return True
    return False


def _reference(form: Form, view: View, repairs: list[str]) -> str | None:
    for there, value in form.candidates("reference", view):
        if not there or value is None:
            continue
        if isinstance(value, (str, list, dict)):
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                text: str | None = "\n".join(item.strip() for item in value if item.strip())
            else:
                text = answer_of(value, repairs)
            if text:
                return text
            if text is None:
                repairs.append(Repair.BAD_REFERENCE)
        else:
            repairs.append(Repair.BAD_REFERENCE)
    return None


def _first_id(form: Form, view: View, repairs: list[str]) -> str | None:
    noted: list[str] = []
    for there, value in form.candidates("id", view):
        found = read_id(value, noted) if there else None
        if found:
            repairs += [repair for repair in noted if repair == Repair.LONG_ID]
            return found
    repairs += noted
    return None


def _first_time(form: Form, view: View, repairs: list[str]) -> float | None:
    noted: list[str] = []
    for there, value in form.candidates("timestamp", view):
        found = read_time(value, noted) if there else None
        if found is not None:
            return found
    repairs += noted[:1]
    return None


def _conversation(form: Form, view: View, draft: Draft) -> None:
    for there, value in form.candidates("conversation", view):
        if not there or value in (None, [], ""):
            continue
        turns = turns_of(value, draft.repairs)
        if turns is None:
            draft.repairs.append(Repair.BAD_TURN)
            continue
        spoken = [turn for turn in turns if turn.role in ("user", "assistant")]
        question = draft.question
        asked = [at for at, turn in enumerate(spoken) if turn.role == "user" and question and question in turn.content]
        draft.conversation = tuple(spoken[: asked[-1]] if asked else spoken)
        return


def _labels(form: Form, view: View, repairs: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for there, value in form.candidates("labels", view):
        if there:
            labels |= read_labels(view.open(value), repairs)
    for name, expressions in form.labels.items():
        for expression in expressions:
            raw: Any = expression.find(view)[1]
            text = label_text(raw) if raw is not None else None
            if text and name not in labels:
                labels[name] = text.strip()
                break
    return labels
