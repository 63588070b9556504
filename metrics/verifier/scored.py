"""Rows as features of their statements, kept in a file: a run that is interrupted goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metrics.event import Chunk
from metrics.faithfulness import log_odds
from metrics.judge import JudgeRequest, Label, Statement
from metrics.language import language_of
from metrics.lexical.corpus import Row, fold_of
from metrics.lexical.judge import LexicalJudge
from metrics.statements import claims_of
from metrics.verifier.features import features_of
from metrics.verifier.judge import question_of
from metrics.verifier.reader import Held, Reader

BATCH = 16
"""Rows that go to the network together."""
REPORT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Scores:
    """Features of the statements of rows, by set and row id, and the file that they are kept in.

    `state` names network and features: what was computed under another one is computed anew.
    """

    path: Path
    state: str
    known: dict[str, list[Mapping[str, float]]]


def opened(path: Path, state: str) -> Scores:
    """What the file knows; lines of another state, and a last line that was cut off, are passed over."""
    known: dict[str, list[Mapping[str, float]]] = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                key, of_state, features = json.loads(line)
            except ValueError:
                continue
            if of_state == state:
                known[key] = features
    return Scores(path, state, known)


def request_of(row: Row) -> JudgeRequest | None:
    """The request that a row makes; None where its answer claims nothing."""
    if row.whole:
        statements: tuple[Statement, ...] = (Statement(row.answer, 0, len(row.answer)),)
    else:
        statements = claims_of(row.answer).statements
    if not statements:
        return None
    chunks = tuple(Chunk(text) for text in row.contexts)
    return JudgeRequest(row.question, statements, chunks, row.conversation, language_of(row.answer))


def featured(
    name: str,
    rows: Sequence[Row],
    judges: Sequence[LexicalJudge],
    readers: Sequence[Reader],
    scores: Scores,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[Row, list[Mapping[str, float]]]]:
    """Rows with the features of their statements; a row of fold k by `judges[k]`, and likewise by `readers`, which may
    be divided otherwise. Rows without a claim are left out."""
    asked = [(row, request) for row in rows if (request := request_of(row)) is not None]
    new = [(row, request) for row, request in asked if f"{name}/{row.id}" not in scores.known]
    scores.path.parent.mkdir(parents=True, exist_ok=True)
    started = reported = now()
    with scores.path.open("a", encoding="utf-8") as file:
        for at in range(0, len(new), BATCH):
            batch = new[at : at + BATCH]
            for (row, _), features in zip(batch, _features(batch, judges, readers), strict=True):
                key = f"{name}/{row.id}"
                scores.known[key] = features
                file.write(json.dumps([key, scores.state, features]) + "\n")
            file.flush()
            if now() - reported > REPORT_SECONDS:
                reported = now()
                left = (reported - started) / (at + len(batch)) * (len(new) - at - len(batch)) / 60
                print(f"{name}: {at + len(batch)} of {len(new)} rows, about {left:.0f} min left", flush=True)
    for row, _ in asked:
        yield row, scores.known[f"{name}/{row.id}"]


def _features(
    batch: Sequence[tuple[Row, JudgeRequest]], judges: Sequence[LexicalJudge], readers: Sequence[Reader]
) -> list[list[Mapping[str, float]]]:
    chosen = [judges[fold_of(row.group, len(judges))] for row, _ in batch]
    studied = [judge.study(request) for judge, (_, request) in zip(chosen, batch, strict=True)]
    questions = [question_of(request, s) for (_, request), s in zip(batch, studied, strict=True)]
    readings: list[list[list[Held]]] = [[] for _ in batch]
    for k, reader in enumerate(readers):
        own = [i for i, (row, _) in enumerate(batch) if fold_of(row.group, len(readers)) == k]
        for i, held in zip(own, reader.read([questions[i] for i in own]), strict=True):
            readings[i] = held
    found = []
    for judge, (_, request), s, of_row in zip(chosen, batch, studied, readings, strict=True):
        verdicts = [judge.verdict(examined, request, s.sources) for examined in s.examined]
        found.append(
            [
                features_of(log_odds(v.probability), v.label is Label.CONTRADICTED, held)
                for v, held in zip(verdicts, of_row, strict=True)
            ]
        )
    return found
