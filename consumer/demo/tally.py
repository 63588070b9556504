"""What was flagged, held against the script: how many of the bad answers, how many of the good ones, and which case
explains each incident."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from consumer.case_file import CaseFile
from consumer.demo.script import EXPECTED, Fault
from consumer.demo.traffic import Scripted
from consumer.record import ScoreRecord
from metrics.judge import Label

KEPT = 5000
"""Flagged cases, the newest."""
SHOWN = 20
TOKENS = ("[EMAIL-", "[PHONE-")


@dataclass(slots=True)
class Share:
    """Answers that were scored, and how many of them were flagged."""

    scored: int = 0
    flagged: int = 0


@dataclass(slots=True)
class Tally:
    """Counts records and keeps the newest cases. A record that is read twice counts once."""

    scripted: Mapping[str, Scripted]
    """By event id; the traffic fills it while this is in use."""
    bad: dict[Fault, Share] = field(default_factory=lambda: {fault: Share() for fault in EXPECTED})
    good: Share = field(default_factory=Share)
    records: int = 0
    flagged_ids: list[str] = field(default_factory=list)
    faults: dict[Fault, Counter[str]] = field(default_factory=lambda: {fault: Counter() for fault in EXPECTED})
    cases: deque[CaseFile] = field(default_factory=lambda: deque(maxlen=KEPT))
    best: dict[Fault, CaseFile] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _settled: set[Fault] = field(default_factory=set)

    def count(self, records: Iterable[ScoreRecord]) -> None:
        """Take in score records."""
        for record in records:
            script = self.scripted.get(record.id)
            if script is None or record.id in self._seen:
                continue
            self._seen.add(record.id)
            self.records += 1
            if record.flags:
                self.flagged_ids.append(record.id)
            if not record.scores:
                continue
            if not script.bad and script.fault is Fault.WRONG_DOCUMENTS:
                continue  # A refusal over wrong documents: a flag of its retrieval is no false alarm.
            share = self.bad[script.fault] if script.bad else self.good
            share.scored += 1
            share.flagged += bool(record.flags)
            if script.bad and record.flags:
                self.faults[script.fault][record.fault] += 1

    def keep(self, cases: Iterable[CaseFile]) -> None:
        """Take in case files: the newest flagged ones, and the best example of each incident."""
        for case in cases:
            if not case.record.flags:
                continue
            self.cases.append(case)
            script = self.scripted.get(case.record.id)
            if script is not None and script.bad and script.fault not in self._settled:
                best = self.best.get(script.fault)
                if best is None or _telling(case, script.fault) > _telling(best, script.fault):
                    self.best[script.fault] = case

    def newest(self) -> tuple[CaseFile, ...]:
        """The newest flagged cases, the newest last."""
        return tuple(reversed(tuple(islice(reversed(self.cases), SHOWN))))

    def settle(self, fault: Fault) -> None:
        """The best example of this incident was shown, and stays."""
        self._settled.add(fault)

    def summary(self) -> dict[str, Any]:
        """The part of `--summary` about flags: of all scored answers, the sampled ones."""
        bad = Share(sum(s.scored for s in self.bad.values()), sum(s.flagged for s in self.bad.values()))
        return {
            "bad_answers": _share(bad),
            "good_answers": _share(self.good),
            "flagged_ids": list(self.flagged_ids),
        }

    def incident(self, fault: Fault) -> dict[str, Any]:
        """The same for one incident, with the likely faults of its flagged answers and the case that explains it."""
        best = self.best.get(fault)
        return {
            "bad_answers": _share(self.bad[fault]),
            "likely_faults": dict(self.faults[fault].most_common()),
            "case": None if best is None else best.record.id,
        }


def _share(share: Share) -> dict[str, Any]:
    return {
        "scored": share.scored,
        "flagged": share.flagged,
        "flagged_share": round(share.flagged / share.scored, 4) if share.scored else None,
    }


def _telling(case: CaseFile, fault: Fault) -> tuple[bool, ...]:
    """How much a case explains, the first criterion first: the expected fault, nothing right beside what is wrong, a
    number against a number where documents were updated, a redacted question, English."""
    wrong = [s for s in case.statements if s.label != Label.SUPPORTED]
    against = [s for s in wrong if s.label == Label.CONTRADICTED and any(c.isdigit() for c in s.reason)]
    return (
        case.record.fault == EXPECTED[fault].likely.value,
        bool(wrong) and len(wrong) == len(case.statements),
        bool(against) is (fault is Fault.OLD_KNOWLEDGE),
        any(token in (case.question or "") for token in TOKENS),
        case.record.segment.get("lang") == "en",
    )
