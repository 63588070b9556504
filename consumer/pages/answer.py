"""One case, as its page shows it: marked answer, statements, passages, and where its scores stand among others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from consumer.case_file import CaseChunk, CaseEvidence, CaseFile, CaseStatement
from consumer.case_filter import case_key
from consumer.case_parts import answer_pieces, verdict_counts, worst_first
from consumer.pages import charts
from consumer.pages.texts import Piece, marked_passage
from metrics.answer import ALL, Segment
from metrics.baseline import Baseline
from metrics.flags import MARGIN
from metrics.ranges import range_of
from metrics.rolling import Spans

OPEN_PASSAGES = 3
"""Passages that are open from the start; those with evidence always are."""
LONG = 2000
"""Characters: a longer passage without evidence is closed."""


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """`anchor`: where in the page it stands; empty where the passage does not hold it."""

    evidence: CaseEvidence
    anchor: str


@dataclass(frozen=True, slots=True)
class StatementView:
    """`number` from 1; `target`: where its evidence begins, or else its own line."""

    number: int
    statement: CaseStatement
    evidence: list[EvidenceView]
    target: str


@dataclass(frozen=True, slots=True)
class PassageView:
    """`place` (from 1) among the passages as they were retrieved."""

    place: int
    chunk: CaseChunk
    pieces: list[Piece]
    is_evidence: bool
    open: bool


@dataclass(frozen=True, slots=True)
class ScoreView:
    """`stands`: where the value stands, a line for each distribution that there is."""

    metric: str
    value: float | None
    threshold: float | None
    reason: str
    below: bool
    chart: Markup | None
    stands: list[str]


@dataclass(frozen=True, slots=True)
class CaseView:
    """`pieces`: of the answer, each with the statement that stands there. `trace`: address of its trace elsewhere."""

    key: str
    case: CaseFile
    counts: Mapping[str, int]
    pieces: list[tuple[str, StatementView | None]]
    statements: list[StatementView]
    passages: list[PassageView]
    scores: list[ScoreView]
    trace: str
    passages_left_out: int


def case_view(
    case: CaseFile, spans: Sequence[Spans], keys: Sequence[str], baseline: Baseline | None, trace_link: str
) -> CaseView:
    """`spans`: the distributions of the longest window, as far as there are any; `keys`: the segment keys."""
    views = [_statement(case, at) for at in range(len(case.statements))]
    pieces = [] if case.answer is None else answer_pieces(case.answer, case.statements)
    trace = case.record.trace_id
    return CaseView(
        case_key(case),
        case,
        verdict_counts(case),
        [(text, None if at is None else views[at]) for text, at in pieces],
        [views[at] for at, _ in worst_first(case.statements)],
        _passages(case),
        _scores(case, spans, keys, baseline),
        trace_link.replace("{trace_id}", quote(trace, safe="")) if trace and trace_link else "",
        sum(chunk.text is None for chunk in case.contexts),
    )


def _statement(case: CaseFile, at: int) -> StatementView:
    statement = case.statements[at]
    evidence = []
    for found in statement.evidence:
        held = found.chunk is not None and 0 <= found.chunk < len(case.contexts)
        text = case.contexts[found.chunk].text if found.chunk is not None and held else None
        inside = text is not None and 0 <= found.start < found.end <= len(text)
        evidence.append(EvidenceView(found, f"evidence-{at + 1}-{found.chunk}" if inside else ""))
    target = next((view.anchor for view in evidence if view.anchor), f"statement-{at + 1}")
    return StatementView(at + 1, statement, evidence, target)


def _passages(case: CaseFile) -> list[PassageView]:
    order = sorted(
        range(len(case.contexts)),
        key=lambda at: (case.contexts[at].similarity is None, -(case.contexts[at].similarity or 0.0), at),
    )
    evidence = {e.chunk for statement in case.statements for e in statement.evidence}
    return [
        PassageView(
            at + 1,
            case.contexts[at],
            marked_passage(case.contexts[at].text or "", at, case.statements),
            at in evidence,
            at in evidence or (rank < OPEN_PASSAGES and len(case.contexts[at].text or "") <= LONG),
        )
        for rank, at in enumerate(order)
    ]


def _scores(case: CaseFile, spans: Sequence[Spans], keys: Sequence[str], baseline: Baseline | None) -> list[ScoreView]:
    record = case.record
    own = tuple(record.segment.get(key, ALL) for key in keys)
    views = []
    names = dict.fromkeys((*record.scores, *record.unscored))
    for metric in sorted(names, key=lambda name: name not in record.thresholds):
        score, threshold = record.scores.get(metric), record.thresholds.get(metric)
        if score is None:
            views.append(ScoreView(metric, None, threshold, record.unscored[metric].reason, False, None, []))
            continue
        definition = record.definitions.get(metric, "")
        below = threshold is not None and score.value < threshold - MARGIN
        if not range_of(metric).holds(score.value):
            views.append(ScoreView(metric, score.value, threshold, "", below, None, []))
            continue
        chart, stands = _stands(metric, definition, score.value, threshold, own, spans, keys, baseline)
        views.append(ScoreView(metric, score.value, threshold, "", below, chart, stands))
    return views


def _stands(
    metric: str,
    definition: str,
    value: float,
    threshold: float | None,
    own: Segment,
    spans: Sequence[Spans],
    keys: Sequence[str],
    baseline: Baseline | None,
) -> tuple[Markup | None, list[str]]:
    """The chart is of the baseline where there is one, else of what came lately."""
    range_ = range_of(metric)
    known: list[tuple[Sequence[float], str]] = []
    labels = {key: chosen for key, chosen in zip(keys, own, strict=True) if chosen != ALL}
    found = None if baseline is None else baseline.distribution(metric, definition, labels)
    if found is not None:
        known.append((found.histogram, f"of the {found.n:,} validated answers of the baseline"))
    lately = next(
        (s for s in spans if s.metric == metric and s.definition == definition and s.segment == own and s.recent), None
    )
    if lately is not None and lately.recent is not None:
        masses = [float(weight) for weight in lately.recent.masses]
        known.append((masses, f"of this segment's {lately.recent.samples:,} answers in the last {lately.window}"))
    stands = []
    for histogram, whose in known:
        share = charts.share_below(histogram, range_, value)
        if share is not None:
            stands.append(f"higher than {share:.0%} {whose}")
    if not known:
        return None, []
    label = f"{metric.replace('_', ' ')} {value:.3f}: {'; '.join(stands)}"
    return charts.distribution(known[0][0], range_, value, threshold, label), stands
