"""Scoring topic similarity where contexts recur, against encoding everything anew with sentence-transformers.

Events of 5 chunks of 150 words and an answer of 40 words; each chunk is seen 10 times; Redis is real and starts empty.
Ours: the evaluator that the scorer uses, in batches of `scorer.batch_events`. Theirs: `SentenceTransformer.encode` of
all chunks and the answer of every event at its default precision and batch 32, then the same rule (the most similar
chunk).

    python -m tests.bench.embedding [--events 60] [--repeats 1] [--out docs/performance/embedding.json]
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import orjson

from consumer.embedded import embedded_redis
from metrics.event import Chunk, Event
from metrics.outcome import Scored

CHUNKS, CHUNK_WORDS, ANSWER_WORDS, SEEN = 5, 150, 40, 10
SUBJECTS = (
    "the parcel", "our insurance", "a new badge", "the night train", "the annual report", "every invoice",
    "the heating", "a spare key", "the laboratory", "this contract", "the ferry", "a visitor", "the pension fund",
    "the north gate",
)  # fmt: skip
VERBS = (
    "arrives before", "must be checked against", "is handed over with", "replaces", "depends on", "is signed after",
    "costs less than", "was delayed by", "is stored next to", "cannot be returned without", "is explained in",
)  # fmt: skip
OBJECTS = (
    "the second reminder", "a written request", "the old timetable", "the regional office", "a valid passport",
    "the warehouse in the harbour", "the budget of last year", "a photograph", "the safety course", "twelve copies",
    "the temperature of the store room", "the director's approval", "an emergency number", "the winter season",
)  # fmt: skip


def batched(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def prose(random_: random.Random, words: int) -> str:
    """So many words of plain sentences; each text starts with a number of its own, so that no two are alike."""
    found = [f"Note {random_.randrange(10**9)}."]
    while len(found) < words:
        sentence = f"{random_.choice(SUBJECTS)} {random_.choice(VERBS)} {random_.choice(OBJECTS)}."
        found += sentence.capitalize().split()
    return " ".join(found[:words])


def events_of(number: int, seed: int) -> list[Event]:
    """Each chunk is in `SEEN` events, spread over the whole run."""
    random_ = random.Random(seed)
    chunks = [prose(random_, CHUNK_WORDS) for _ in range(number * CHUNKS // SEEN)]
    deck = chunks * SEEN
    random_.shuffle(deck)
    return [
        Event(f"e{i}", 0.0, None, tuple(map(Chunk, texts)), prose(random_, ANSWER_WORDS))
        for i, texts in enumerate(batched(deck, CHUNKS))
    ]


def ours(events: Sequence[Event], redis_url: str, metrics: tuple[str, ...]) -> tuple[list[float], float, str]:
    """(topic similarity per event, seconds, what ran)."""
    from consumer.embedders import build_evaluator
    from consumer.settings import Embedding, Redis, Scorer, Scoring, Settings

    threads = int(os.environ.get("GROUNDWATCH_BENCH_THREADS", "0"))
    settings = Settings(
        redis=Redis(cache_url=redis_url), scoring=Scoring(metrics=metrics), embedding=Embedding(threads=threads)
    )
    evaluator = build_evaluator(settings, None)
    evaluator.evaluate(events_of(4, seed=99))
    started = time.perf_counter()
    outcomes = []
    for some in batched(events, Scorer().batch_events):
        outcomes += [found.outcomes["topic_similarity"] for found in evaluator.evaluate(some)]
    seconds = time.perf_counter() - started
    values = [outcome.value for outcome in outcomes if isinstance(outcome, Scored)]
    return values, seconds, evaluator.embedder.identity


def theirs(events: Sequence[Event], folder: Path) -> tuple[list[float], float]:
    """The same with sentence-transformers, every text of every event encoded anew."""
    import torch
    from sentence_transformers import SentenceTransformer

    threads = int(os.environ.get("GROUNDWATCH_BENCH_THREADS", "0"))
    torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)

    def encode(some: Sequence[Event]) -> list[float]:
        texts = [f"passage: {text}" for e in some for text in (e.answer or "", *(c.text for c in e.contexts))]
        vectors = np.asarray(model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False))
        groups = vectors.reshape(len(some), 1 + CHUNKS, -1)
        return [float((group[1:] @ group[0]).max()) for group in groups]

    encode(events_of(4, seed=99))
    started = time.perf_counter()
    values = encode(events)
    return values, time.perf_counter() - started


def memory() -> dict[str, int]:
    """Resident memory of this process in MB: now, its private part, and the most so far."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(fields[name].split()[0]) // 1024 for name in ("VmRSS", "RssAnon", "RssFile", "VmHWM")}


def _child(part: str, *arguments: str) -> Any:
    """One side in a process of its own, so that neither warms or burdens the other.

    Neither side's threads spin while they wait: on a machine that does other work too that would cost the side with
    more to compute more.
    """
    command = [sys.executable, "-m", "tests.bench.embedding", "--part", part, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"})
    return orjson.loads(done.stdout.splitlines()[-1])


def _run_part(part: str, number: int, redis_url: str) -> dict[str, Any]:
    events = events_of(number, seed=1)
    if part == "theirs":
        from consumer.embedders import models_dir
        from consumer.settings import Embedding
        from metrics.model_store import ready_model

        values, seconds = theirs(events, ready_model(models_dir(Embedding()), Embedding().model))
        return {"values": values, "seconds": seconds, "memory": memory()}
    all_three = ("topic_similarity", "question_context_similarity", "question_answer_similarity")
    metrics = all_three if part == "ours_all" else all_three[:1]
    if part == "ours_all":
        random_ = random.Random(5)
        events = [Event(e.id, 0.0, prose(random_, 12), e.contexts, e.answer) for e in events]
    values, seconds, identity = ours(events, redis_url, metrics)
    return {"values": values, "seconds": seconds, "identity": identity, "memory": memory()}


@click.command()
@click.option("--events", "number", default=60, show_default=True, help="A multiple of 10.")
@click.option("--repeats", default=1, show_default=True, help="Rounds of both sides in turn; the median ratio counts.")
@click.option("--part", hidden=True, default="")
@click.option("--redis", "redis_url", hidden=True, default="")
@click.option("--out", type=click.Path(path_type=Path), help="Write the figures as JSON.")
def main(number: int, repeats: int, part: str, redis_url: str, out: Path | None) -> None:
    if part:
        click.echo(orjson.dumps(_run_part(part, number, redis_url)))
        return
    rounds = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder, embedded_redis(Path(folder) / "redis.log") as url:
            own = _child("ours", "--events", str(number), "--redis", url)
        other = _child("theirs", "--events", str(number))
        apart = float(np.abs(np.asarray(own["values"]) - np.asarray(other["values"])).max())
        rounds.append((number / own["seconds"], number / other["seconds"], apart, own["memory"], other["memory"]))
        click.echo(
            f"ours {rounds[-1][0]:.2f} events/s, sentence-transformers {rounds[-1][1]:.2f} events/s, "
            f"ratio {rounds[-1][0] / rounds[-1][1]:.2f}, largest difference of a score {apart:.1e}"
        )
    with tempfile.TemporaryDirectory() as folder, embedded_redis(Path(folder) / "redis.log") as url:
        full = _child("ours_all", "--events", str(number), "--redis", url)
    ratio = float(np.median([own / other for own, other, *_ in rounds]))
    figures = {
        "events": number,
        "ratio": round(ratio, 2),
        "ours_events_per_second": [round(r[0], 2) for r in rounds],
        "sentence_transformers_events_per_second": [round(r[1], 2) for r in rounds],
        "all_metrics_events_per_second": round(number / full["seconds"], 2),
        "largest_score_difference": max(r[2] for r in rounds),
        "memory_mb": full["memory"],
        "sentence_transformers_memory_mb": rounds[-1][4],
        "processor_load": os.getloadavg(),
    }
    click.echo(orjson.dumps(figures, option=orjson.OPT_INDENT_2).decode())
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    ok = ratio >= 5 and max(r[2] for r in rounds) <= 1e-3
    raise SystemExit(0 if ok else 1)


if __name__ == "__main__":
    main()
