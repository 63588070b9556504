"""Fit the lexical judge: `python -m metrics.lexical.fit --data DATA` writes weights.json and prior.json here.

Logistic regression with an L2 penalty and signs that cannot be against sense (more overlap never lowers support), by
accelerated projected gradient (Nesterov 1983). An answer's log-odds are those of `answer_log_odds` and half the mean of
all its statements: the statements that are lowest under the current weights are chosen anew in every round (multiple
instance learning). Each set counts alike, and both classes alike within a set; each set has an offset of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from metrics.faithfulness import LOWEST, LOWEST_SHARE
from metrics.lexical import answer_fit, corpus
from metrics.lexical.answer_fit import answered_sets
from metrics.lexical.corpus import Row, fold_of
from metrics.lexical.evidence import Index
from metrics.lexical.features import VERSION, examine
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.model import PRIOR, WEIGHTS, Model
from metrics.lexical.reading import read
from metrics.lexical.words import word_lists
from metrics.logistic import logistic
from metrics.statements import claims_of

Floats = npt.NDArray[np.float64]

FOLDS = 5
ROUNDS = 3
HELPER_SHARE = 0.03
"""Weight of a set of pairs or of made rows, against 1 of a set of real answers."""
SIGNS = {
    "coverage": 1, "best_window": 1, "best_sentence": 1, "words": 1, "answer": 1, "pairs": 1,
    "novel": -1, "names_absent": -1,
    "numbers_absent": -1, "number_conflict": -1, "negation_conflict": -1, "opposite_conflict": -1, "order_conflict": -1,
    "name_conflict": -1, "substitution": -1, "parity": -1, "speaker": -1,
}  # fmt: skip
CONFLICT_FEATURES = ("best_window", "number_conflict", "negation_conflict", "opposite_conflict", "order_conflict",
                     "name_conflict", "substitution", "parity", "names_absent", "numbers_absent",
                     "unspaced")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Example:
    """A row as numbers: `features` has a row a statement, shape (statements, features)."""

    features: Floats
    label: int
    group: str
    contradicted: bool | None


@dataclass(frozen=True, slots=True)
class Fitted:
    """Log-odds = features @ weights + intercept."""

    weights: Floats
    intercept: float

    def answer(self, features: Floats) -> float:
        return float(combined(features @ self.weights + self.intercept))


def combined(log_odds: Floats) -> float:
    """As `metrics.faithfulness.answer_log_odds`."""
    lowest = np.sort(log_odds)[:LOWEST]
    return float(LOWEST_SHARE * lowest.mean() + (1.0 - LOWEST_SHARE) * log_odds.mean())


def prior_of(texts: Iterable[str]) -> dict[str, float]:
    """How rare words are, in (0, 1]: log inverse sentence frequency, 1 for what is rarer than the 2,000th term.

    Function words stand as written, all others as terms; scripts with and without spaces are counted apart.
    """
    stop = frozenset(word_lists()["stop"]["english"].split())
    spaced: Counter[str] = Counter()
    unspaced: Counter[str] = Counter()
    sentences = [0, 0]
    for text in texts:
        for sentence in read(text).sentences:
            wide = any(not term.isascii() for term in sentence.vocabulary)
            sentences[wide] += 1
            (unspaced if wide else spaced).update(sentence.vocabulary | (sentence.words & stop))
    weights: dict[str, float] = {}
    for counts, total in ((spaced, sentences[0]), (unspaced, sentences[1])):
        common = [(t, n) for t, n in counts.most_common(2000) if not t.isdigit()]
        if common:
            rarest = math.log(total / common[-1][1])
            weights |= {term: round(max(math.log(total / n) / rarest, 0.05), 2) for term, n in common}
    return weights


class Extractor:
    """Rows to examples; contexts that recur are read once."""

    def __init__(self, prior: Mapping[str, float]) -> None:
        self._prior = prior
        self._read = lru_cache(maxsize=4096)(read)
        self.names: tuple[str, ...] = ()

    def __call__(self, row: Row) -> Example:
        texts = [row.answer] if row.whole else [s.text for s in claims_of(row.answer).statements] or [row.answer]
        sources = [*row.contexts, *row.conversation]
        index = Index([self._read(text) for text in sources], self._prior)
        found = [examined.features for examined in examine(texts, index, sources)]
        self.names = tuple(found[0])
        features = np.array([[f[name] for name in self.names] for f in found], dtype=np.float64)
        return Example(features, row.label, row.group, row.contradicted)


def fit(sets: Mapping[str, Sequence[Example]], names: Sequence[str], signs: Mapping[str, int] = SIGNS) -> Fitted:
    """Weights over all sets; the intercept is without any set's offset and still to be placed (`placed`).

    `signs`: which way a feature may count at most, 1 or -1.
    """
    sets = {name: examples for name, examples in sets.items() if len({e.label for e in examples}) == 2}
    every = np.concatenate([e.features for examples in sets.values() for e in examples])
    centre, spread = every.mean(axis=0), every.std(axis=0) + 1e-6
    statements = [(e.features - centre) / spread for examples in sets.values() for e in examples]
    labels = np.array([e.label for examples in sets.values() for e in examples], dtype=np.float64)
    share = np.concatenate([_balance(examples, _share(name)) for name, examples in sets.items()])
    offsets = np.repeat(np.eye(len(sets)), [len(examples) for examples in sets.values()], axis=0)
    low = np.array([0.0 if signs.get(n) == 1 else -np.inf for n in names] + [-np.inf] * len(sets))
    high = np.array([0.0 if signs.get(n) == -1 else np.inf for n in names] + [np.inf] * len(sets))
    weights = np.array([0.3 * signs.get(n, 0) for n in names])
    for _ in range(ROUNDS):
        chosen = np.array([_answer_features(s, weights) for s in statements])
        solved = logistic(np.hstack([chosen, offsets]), labels, share, low, high)
        weights = solved[: len(names)]
    real = [k for k, name in enumerate(sets) if name in corpus.LABELLED]
    intercept = float(np.mean(solved[len(names) :][real])) - float(weights @ (centre / spread))
    return Fitted(weights / spread, intercept)


def _share(name: str) -> float:
    return 1.0 if name in corpus.LABELLED else HELPER_SHARE


def _balance(examples: Sequence[Example], share: float) -> Floats:
    labels = np.array([e.label for e in examples])
    return np.asarray(300.0 * share * np.where(labels == 1, 0.5 / labels.sum(), 0.5 / (1 - labels).sum()))


def _answer_features(statements: Floats, weights: Floats) -> Floats:
    """The mixture of statements whose log-odds are those of the answer; log-odds are linear in the features."""
    lowest = np.argsort(statements @ weights, kind="stable")[:LOWEST]
    mixed = LOWEST_SHARE * statements[lowest].mean(axis=0) + (1.0 - LOWEST_SHARE) * statements.mean(axis=0)
    return np.asarray(mixed)


def balanced_accuracy(scores: Floats, labels: npt.NDArray[np.int64], threshold: float) -> float:
    """Mean of the shares of both classes that the threshold puts on their side."""
    return float(((scores[labels == 1] > threshold).mean() + (scores[labels == 0] <= threshold).mean()) / 2.0)


def held_out(
    sets: Mapping[str, Sequence[Example]], names: Sequence[str], signs: Mapping[str, int] = SIGNS
) -> list[Fitted]:
    """One fit a fold, none of which saw a group of its fold."""
    fits = []
    for fold in range(FOLDS):
        rest = {name: [e for e in examples if fold_of(e.group, FOLDS) != fold] for name, examples in sets.items()}
        fits.append(fit(rest, names, signs))
    return fits


def placed(sets: Mapping[str, Sequence[Example]], fits: Sequence[Fitted]) -> float:
    """What to subtract from the log-odds so that 0 is the best threshold over the sets of real answers.

    Best: highest mean balanced accuracy of answers, by held-out scores, each set counting alike.
    """
    scored = []
    for name in corpus.LABELLED:
        if sets.get(name):
            scores = np.array([fits[fold_of(e.group, FOLDS)].answer(e.features) for e in sets[name]])
            scored.append((scores, np.array([e.label for e in sets[name]])))
    grid = np.linspace(-3.0, 3.0, 121)
    means = [float(np.mean([balanced_accuracy(s, y, t) for s, y in scored])) for t in grid]
    smooth = np.convolve(means, np.ones(9) / 9, mode="same")
    return float(grid[int(np.argmax(smooth[4:-4])) + 4])


def fit_conflict(sets: Mapping[str, Sequence[Example]], names: Sequence[str]) -> Fitted:
    """Contradicted (1) against not found (0), of single statements that are not supported."""
    at = [names.index(name) for name in CONFLICT_FEATURES]
    known = [e for examples in sets.values() for e in examples if e.contradicted is not None and len(e.features) == 1]
    x = np.array([e.features[0, at] for e in known])
    y = np.array([float(bool(e.contradicted)) for e in known])
    spread = x.std(axis=0) + 1e-6
    share = np.where(y == 1, 0.5 / y.sum(), 0.5 / (1 - y).sum()) * 1000.0
    free = np.full(x.shape[1] + 1, np.inf)
    solved = logistic(np.hstack([x / spread, np.ones((len(x), 1))]), y, np.asarray(share), -free, free)
    return Fitted(solved[:-1] / spread, float(solved[-1]))


def model_of(fitted: Fitted, shift: float, conflict: Fitted, names: Sequence[str], prior: Mapping[str, float]) -> Model:
    """The fits as the judge takes them, rounded as they are written; nothing is said of whole answers."""
    return Model(
        weights={n: round(float(w), 4) for n, w in zip(names, fitted.weights, strict=True)},
        intercept=round(fitted.intercept - shift, 4),
        conflict={n: round(float(w), 4) for n, w in zip(CONFLICT_FEATURES, conflict.weights, strict=True)},
        conflict_intercept=round(conflict.intercept, 4),
        prior=prior,
        answer=None,
        digest="unsaved",
    )


def held_out_judges(
    sets: Mapping[str, Sequence[Example]], names: Sequence[str], prior: Mapping[str, float]
) -> list[LexicalJudge]:
    """A judge a fold, whose weights saw no group of it; the thresholds are placed by all folds."""
    fits = held_out(sets, names)
    shift, conflict = placed(sets, fits), fit_conflict(sets, names)
    return [LexicalJudge(model_of(fitted, shift, conflict, names, prior)) for fitted in fits]


def examples_of(data: Path, extract: Extractor) -> dict[str, list[Example]]:
    """Everything that is fitted on, by set."""
    rows = {name: corpus.labelled(data, name) for name in corpus.LABELLED} | helpers(data)
    sets = {}
    for name, of_set in rows.items():
        sets[name] = [extract(row) for row in of_set]
        print(f"{name}: {len(of_set)} rows", flush=True)
    return sets


def helpers(data: Path) -> dict[str, list[Row]]:
    """Sentence pairs and made rows."""
    rows = {name: corpus.pairs(data, name) for name in corpus.PAIRS}
    return rows | {
        "chinese_answers": corpus.chinese_answers(data),
        "altered_english": corpus.altered_english(data),
        "altered_chinese": corpus.altered_chinese(data),
    }


def _digest(data: Path) -> str:
    digest = hashlib.sha256()
    names = {f"labelled/{n}" for n in (*corpus.LABELLED, *corpus.FREQUENCIES)} | {f"nli/{n}" for n in corpus.PAIRS}
    for name in sorted(names):
        digest.update(name.encode() + hashlib.sha256((data / f"{name}.jsonl.gz").read_bytes()).digest())
    return digest.hexdigest()


def contexts_of(data: Path, name: str) -> list[str]:
    """The first 1,500 different contexts of a set, at most 3,000 characters of each."""
    found: dict[str, None] = {}
    for text in corpus.texts(data, name):
        found.setdefault(text[:3000])
        if len(found) == 1500:
            break
    return list(found)


def main() -> None:
    arguments = argparse.ArgumentParser(description="Fit the lexical judge.")
    arguments.add_argument("--data", type=Path, required=True, help="folder with labelled/ and nli/")
    arguments.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the two files")
    chosen = arguments.parse_args()
    if not chosen.out.is_dir():
        arguments.error(f"{chosen.out} is no folder: --out is the folder that {WEIGHTS} and {PRIOR} go to")
    missing = [n for n in corpus.LABELLED if not (chosen.data / "labelled" / f"{n}.jsonl.gz").is_file()]
    if missing:
        arguments.error(
            f"{chosen.data} lacks labelled/{missing[0]}.jsonl.gz: give --data the folder of the labelled sets"
        )
    prior = prior_of(text for name in corpus.FREQUENCIES for text in contexts_of(chosen.data, name))
    extract = Extractor(prior)
    sets = examples_of(chosen.data, extract)
    fitted = fit(sets, extract.names)
    shift = placed(sets, held_out(sets, extract.names))
    conflict = fit_conflict(sets, extract.names)
    answer = answer_fit.fit(answered_sets(chosen.data, held_out_judges(sets, extract.names, prior)))
    made = {"command": "python -m metrics.lexical.fit --data DATA", "data_sha256": _digest(chosen.data),
            "features_version": VERSION, "rows": {name: len(of_set) for name, of_set in sets.items()}}  # fmt: skip
    model = model_of(fitted, shift, conflict, extract.names, prior)
    weights = {
        **made,
        "support": {"intercept": model.intercept, "weights": model.weights},
        "contradiction": {"intercept": model.conflict_intercept, "weights": model.conflict},
        "answer": asdict(answer),
    }
    _write(chosen.out / WEIGHTS, json.dumps(weights, ensure_ascii=False, indent=2))
    _write(chosen.out / PRIOR, _prior_lines({**made, "sets": corpus.FREQUENCIES}, prior))


def _prior_lines(made: Mapping[str, object], prior: Mapping[str, float]) -> str:
    head = json.dumps({k: v for k, v in made.items() if k != "rows"}, ensure_ascii=False, indent=2)[:-2]
    entries = [
        f"{json.dumps(t, ensure_ascii=False)}: {w}" for t, w in sorted(prior.items(), key=lambda i: (i[1], i[0]))
    ]
    lines = ",\n    ".join(", ".join(entries[k : k + 8]) for k in range(0, len(entries), 8))
    return f'{head},\n  "weights": {{\n    {lines}\n  }}\n}}'


def _write(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
