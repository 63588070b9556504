"""One case file as an on-call engineer reads it: the wrong statement first, and why it is thought to be wrong.

Signs and words say everything that colour says. Text of an event stands behind a bar on every line, inert, so that no
text can pass for a line of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import click

from consumer.case_file import CaseChunk, CaseEvidence, CaseFile
from consumer.case_filter import case_key
from consumer.case_parts import FAULTS, SIGNS, answer_pieces, verdict_counts, without_text, worst_first
from consumer.case_stretches import LeftOut, is_plain, middle_left_out, statements_shown, without_long_stretches
from consumer.inert_text import inert, inert_lines
from consumer.label import Label
from consumer.since import utc
from consumer.terminal_text import shortened, wrapped
from metrics.flags import MARGIN

COLOURS: Mapping[str, str] = {"supported": "green", "contradicted": "red", "not_found": "yellow"}
PASSAGE = 320
"""Characters of a passage that are shown where it is listed; its evidence is shown beside the statement."""
ROOM = 160
"""Characters on either side of the evidence within a long passage."""
BAR = "│ "

LONGEST_ID = 64
"""Columns of an id that stands whole in a list."""
SHORTENED_ID = 24


@dataclass(frozen=True, slots=True)
class Style:
    """`width` in terminal columns. Unless `whole`, what is long and not wrong is shortened."""

    width: int = 100
    whole: bool = False


def rendered(case: CaseFile, style: Style, label: Label | None = None) -> str:
    """The whole page, with ANSI colours (click takes them off where the output is no terminal). `label`: what a person
    said of it."""
    blocks = [
        list(_head(case)), list(_why(case)), list(_labelled(label, style)), list(_question(case, style)),
        list(_answer(case, style)),
        list(_statements(case, style)), list(_scores(case)), list(_passages(case, style)), list(_origin(case)),
    ]  # fmt: skip
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _title(text: str, note: str = "") -> str:
    return click.style(text.upper(), bold=True) + (f"  {note}" if note else "")


def _head(case: CaseFile) -> Iterator[str]:
    record = case.record
    yield click.style(f"CASE {inert(record.id)}", bold=True) + f"  ({case_key(case)})"
    yield f"  {utc(record.event_time)}  {segment_text(record.segment)}" + (
        f"  {pairs(record.labels)}" if record.labels else ""
    )
    if record.run != "live":
        yield f"  run {inert(record.run)}: not part of the live gauges"
    if case.truncated:
        yield click.style(f"  {_left_out(case)}", fg="yellow")
    if case.statements_left_out:
        left_out = (
            f"  {case.statements_left_out:,} statements beyond the first {len(case.statements):,} were not judged"
        )
        yield click.style(left_out, fg="yellow")


def _left_out(case: CaseFile) -> str:
    if without_text(case):
        return "shortened: the broker refused the whole for its size; all text is missing"
    missing = sum(chunk.text is None for chunk in case.contexts)
    return f"shortened: the broker refused the whole for its size; {missing} of {len(case.contexts)} passages lack text"


def _why(case: CaseFile) -> Iterator[str]:
    record = case.record
    yield _title("why it is here")
    for flag in record.flags:
        metric = flag.removesuffix("_low")
        score, threshold = record.scores.get(metric), record.thresholds.get(metric)
        found = ""
        if score is not None and threshold is not None:
            found = f": {_name(metric)} {score.value:.3f} is below {threshold:.3f}"
        yield "  " + click.style(f"✗ flagged {inert(flag)}", fg="red") + found
    if "audit" in case.why:
        share = "" if case.audit_probability is None else f" (audit probability {case.audit_probability:g})"
        yield f"  · audited: chosen by the hash of its id, whatever its score{share}"
    if record.flags:
        fault = click.style(inert(record.fault), bold=True)
        yield f"  likely fault: {fault}; {FAULTS.get(record.fault, 'not known to this version')}"
    if record.refusal:
        yield "  the answer refuses, or claims nothing"
    if record.evasive:
        yield "  the answer avoids the question"
    if case.judge_replies:
        yield f"  {len(case.judge_replies)} replies of the judge could not be read (judge_replies in the case file)"


def _labelled(label: Label | None, style: Style) -> Iterator[str]:
    if label is None:
        return
    yield _title("label", f"{label_text(label)}, {utc(label.labelled_time)}")
    if label.note:
        yield from _barred(label.note, style)


def label_text(label: Label) -> str:
    """`good by anna`, with the sign that a verdict has."""
    sign, colour = ("✓", "green") if label.verdict == "good" else ("✗", "red")
    return click.style(f"{sign} {label.verdict}", fg=colour) + f" by {shortened(label.by, 40)}"


def _question(case: CaseFile, style: Style) -> Iterator[str]:
    for turn in case.conversation:
        yield _title(f"earlier, {shortened(str(turn.get('role', '?')), 20)}")
        yield from _shortened(str(turn.get("content", "")), style)
    yield _title("question")
    yield from _text_or_absent(case.question, style)


def _answer(case: CaseFile, style: Style) -> Iterator[str]:
    counts = " ".join(f"{SIGNS[label]} {n} {_name(label)}" for label, n in verdict_counts(case).items() if n)
    yield _title("answer", counts)
    if case.answer is None or not case.answer.strip():
        yield from _text_or_absent(case.answer, style)
        return
    pieces = answer_pieces(case.answer, case.statements)
    for part in pieces if style.whole else without_long_stretches(pieces, case.statements):
        if isinstance(part, LeftOut):
            yield _left_out_here(part, " " * 20)
            continue
        piece, at = part
        if at is None:
            yield from _barred(piece, style, gutter=" " * 20)
        else:
            label = case.statements[at].label
            gutter = f"{SIGNS.get(label, '·')} {_name(inert(label)):<13}{at + 1:>3}  "
            yield from _barred(piece, style, gutter=gutter, colour=COLOURS.get(label))


def _statements(case: CaseFile, style: Style) -> Iterator[str]:
    if not case.statements:
        return
    yield _title("statements", "(worst first)")
    shown, left_out, characters = worst_first(case.statements), 0, 0
    if not style.whole:
        shown, left_out, characters = statements_shown(shown)
    for at, statement in shown:
        barred = _shortened if is_plain(statement) else _barred
        sign = f"{SIGNS.get(statement.label, '·')} {_name(inert(statement.label))}"
        said = f"{at + 1:>3}  {click.style(sign, fg=COLOURS.get(statement.label))}"
        yield f"{said}  (probability of supported {statement.probability:.2f})"
        yield from barred(statement.text, style, gutter="       says ")
        yield from _barred(statement.reason, style, gutter="    because ")
        if statement.conflict:
            yield click.style("   conflict the passages contradict each other about it", fg="yellow")
        for evidence in statement.evidence:
            said, text = _evidence(case, evidence)
            yield said
            yield from barred(text, style, gutter=" " * 12)
    if left_out:
        yield f"     … {left_out:,} more supported statements ({characters:,} characters) left out; --full shows all"


def _evidence(case: CaseFile, evidence: CaseEvidence) -> tuple[str, str]:
    """Where it stands, and what it says."""
    if evidence.chunk is None:
        said = f"   evidence {inert(evidence.chunk_id or 'conversation')}, what the user said earlier"
        return said, f"»{evidence.quote}«"
    name = f" {shortened(evidence.chunk_id, 60)}" if evidence.chunk_id else ""
    chunk = case.contexts[evidence.chunk] if 0 <= evidence.chunk < len(case.contexts) else None
    said = f"   evidence passage {evidence.chunk + 1}{name}, characters {evidence.start} to {evidence.end}"
    return said, _in_its_passage(chunk, evidence)


def _in_its_passage(chunk: CaseChunk | None, evidence: CaseEvidence) -> str:
    text = None if chunk is None else chunk.text
    start, end = evidence.start, evidence.end
    if text is None or not 0 <= start < end <= len(text):
        return f"»{evidence.quote}«"
    before, after = text[max(0, start - ROOM) : start], text[end : end + ROOM]
    left, right = "…" if start > ROOM else "", "…" if end + ROOM < len(text) else ""
    return f"{left}{before}»{text[start:end]}«{after}{right}"


def _scores(case: CaseFile) -> Iterator[str]:
    record = case.record
    yield _title("scores", "(against the thresholds in force for the segment)")
    # What was judged comes before what was only measured.
    for name in sorted(dict.fromkeys((*record.scores, *record.unscored)), key=lambda n: n not in record.thresholds):
        threshold = record.thresholds.get(name)
        score = record.scores.get(name)
        line = f"  {_name(inert(name)):<30}"
        if score is None:
            yield f"{line}   -    unscored: {_name(inert(record.unscored[name].reason))}"
        elif threshold is None:
            yield f"{line} {score.value:6.3f}  no threshold"
        elif score.value < threshold - MARGIN:
            below = click.style(f"✗ below by {threshold - score.value:.3f}", fg="red")
            yield f"{line} {score.value:6.3f}  {below}  (threshold {threshold:g})"
        else:
            yield f"{line} {score.value:6.3f}  ✓ not below  (threshold {threshold:g})"


def _passages(case: CaseFile, style: Style) -> Iterator[str]:
    yield _title("passages", f"({len(case.contexts)})" if case.contexts else "none retrieved")
    for at, chunk in enumerate(case.contexts):
        about = [
            *([shortened(chunk.id, 60)] if chunk.id else []),
            *([f"from {shortened(chunk.source, 60)}"] if chunk.source else []),
            *([] if chunk.similarity is None else [f"similarity to the answer {chunk.similarity:.3f}"]),
            *([] if chunk.score is None else [f"retriever's score {chunk.score:g}"]),
        ]
        yield f"{at + 1:>3}  {', '.join(about)}"
        if chunk.text is None:
            yield "     (text left out: the broker refused the whole)"
            continue
        cut = not style.whole and len(chunk.text) > PASSAGE
        yield from _barred(chunk.text[:PASSAGE] + "…" if cut else chunk.text, style, gutter="     ")
        if cut:
            yield f"     ({len(chunk.text)} characters; --full shows all)"


def _origin(case: CaseFile) -> Iterator[str]:
    record = case.record
    rate = f"{record.probability:g}"
    rows = {
        "event at": f"{utc(record.event_time)}, scored {utc(record.scored_time)}",
        "read from": inert(
            f"{record.source.topic}, partition {record.source.partition}, offset {record.source.offset}"
        ),
        "sampled by": inert(f"{record.sampled_by}, inclusion probability {rate}"),
        "trace id": inert(record.trace_id) if record.trace_id else "(none)",
        "versions": pairs(record.versions),
        "definitions": pairs(record.definitions),
        "judge's cost": pairs({name: str(n) for name, n in record.cost.items()}),
    }
    yield _title("where it comes from")
    yield from (f"  {name:<13} {value}" for name, value in rows.items() if value)
    if case.reference is not None:
        yield f"  {'reference':<13} {shortened(case.reference, 200)}"


def _text_or_absent(text: str | None, style: Style) -> Iterator[str]:
    if text is None:
        yield "  (none)"
    elif not text.strip():
        yield "  (blank)"
    else:
        yield from _shortened(text, style)


def _shortened(text: str, style: Style, gutter: str = "  ") -> Iterator[str]:
    """As `_barred`, without the middle of a long text."""
    for part in [text] if style.whole else middle_left_out(text):
        if isinstance(part, LeftOut):
            gutter = " " * len(gutter)
            yield _left_out_here(part, gutter)
        else:
            yield from _barred(part, style, gutter)


def _left_out_here(part: LeftOut, gutter: str) -> str:
    """Without a bar, so that no text can pass for it."""
    return f"{gutter}… {part.characters:,} characters left out; --full shows all"


def _barred(text: str, style: Style, gutter: str = "  ", colour: str | None = None) -> Iterator[str]:
    """Lines of `text` behind a bar; `gutter` stands before the first bar, blanks of its width before the others."""
    room = style.width - len(gutter) - len(BAR)
    lines = [piece for line in inert_lines(text) for piece in wrapped(line, room)]
    for at, line in enumerate(lines):
        left = gutter if at == 0 else " " * len(gutter)
        yield (click.style(left, fg=colour) if colour else left) + BAR + line


def row(case: CaseFile, width: int, label: Label | None = None) -> str:
    """Two lines of a list: what, when, where, why, and what a person said; and the worst statement, or the answer."""
    record = case.record
    flags = ", ".join(inert(flag) for flag in record.flags) or "audit"
    counts = " ".join(f"{n}{SIGNS[label]}" for label, n in verdict_counts(case).items() if n)
    fault = f"  fault {inert(record.fault)}" if record.flags else ""
    head = f"{utc(record.event_time)}  {_reference(case)}  {segment_text(record.segment)}"
    worst = worst_first(case.statements)[:1]
    if worst and worst[0][1].label != "supported":
        found = worst[0][1].label
        sign, text = f"{SIGNS.get(found, '·')} {_name(inert(found))}", worst[0][1].text
    else:
        sign, text = "answer", case.answer or ""
    colour = COLOURS.get(worst[0][1].label) if worst else None
    second = f"    {click.style(sign, fg=colour)} {BAR}{shortened(text, max(20, width - len(sign) - 8))}"
    said = "" if label is None else f"  label {label_text(label)}"
    return f"{head}  {flags}{fault}  {counts}".rstrip() + said + "\n" + second


def _reference(case: CaseFile) -> str:
    """What `cases show` takes: the event's id as it is, or the case key where the id is too long for a list, cannot be
    printed as it is, or would pass for an option."""
    name = case.record.id
    if name and name == name.strip() == shortened(name, LONGEST_ID) and not name.startswith("-"):
        return click.style(name, bold=True)
    return f"{click.style(case_key(case), bold=True)} ({shortened(name, SHORTENED_ID)})"


def segment_text(segment: Mapping[str, str]) -> str:
    return ",".join(f"{inert(name)}={shortened(value, 40)}" for name, value in segment.items())


def pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{inert(name)} {shortened(value, 80)}" for name, value in values.items())


def _name(text: str) -> str:
    """A name of a closed list, as people write it."""
    return text.replace("_", " ")


def rows(cases: Iterable[CaseFile], width: int, labels: Mapping[str, Label]) -> Iterator[str]:
    """`labels` by case key."""
    return (row(case, width, labels.get(case_key(case))) for case in cases)
