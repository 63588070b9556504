"""Train the verifier: `python -m metrics.verifier.train --data DATA` goes on from the last checkpoint, to the end.

Stages of at most 75 minutes on two quiet cores; each has its own learning-rate cycle, so that what it leaves is usable.
A checkpoint is written every few minutes and when the process is told to stop (SIGTERM, Ctrl-C). Same seed, same data:
same order of the same examples.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from metrics.encoder import Encoder, load_encoder
from metrics.lexical.corpus import fold_of
from metrics.model_files import ModelError
from metrics.model_store import default_dir, ready_model
from metrics.packaged_model import NAME as BASE
from metrics.tokens import Tokens, read_tokens
from metrics.verifier import checkpoints, examples, people
from metrics.verifier.checkpoints import Checkpoint, CheckpointError
from metrics.verifier.learning import TOKEN_SHARE, loss, rate
from metrics.verifier.network import Verifier, assemble, initial, read, rounded
from metrics.verifier.progress import kept_back_figures
from metrics.verifier.sources import Passage
from metrics.verifier.tokenised import Labelled, lesson, steps, tokenised

BUDGET = 3072
"""Tokens of one step."""
HEAD_RATE = 4.0
"""The heads are new and learn so much faster than the encoder."""
CLIP = 1.0
REPORT = 20
"""Steps between two lines of progress."""


@dataclass(frozen=True, slots=True)
class Stage:
    """`share` of `examples.SHARES`; `peak` learning rate; how often claims that `people` judged are gone through."""

    share: float
    peak: float
    people: int = 0


STAGES = (Stage(0.4, 1.5e-4), Stage(1.6, 1.2e-4), Stage(1.6, 1.0e-4), Stage(0.15, 6e-5, people=2))
FOLDS = 2
"""Parts of the groups that people judged, to measure on what the network of the other parts did not see."""


@dataclass(frozen=True, slots=True)
class Base:
    """What is trained on top of: the frozen encoder, its tensors and its tokeniser."""

    encoder: Encoder
    tokens: Tokens
    tensors: Mapping[str, Tensor]


def load_base(folder: Path) -> Base:
    with safe_open(folder / "model.safetensors", "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys() if name.startswith("encoder.")}  # noqa: SIM118
    return Base(load_encoder(folder, "bf16"), read_tokens(folder), tensors)


class Trainer:
    """One stage's parameters and optimiser; `step` makes one step over some rows."""

    def __init__(self, base: Base, stage: Stage, parameters: Mapping[str, Tensor], total: int) -> None:
        self.base, self.stage, self.total = base, stage, total
        self.parameters = {name: t.clone().requires_grad_() for name, t in parameters.items()}
        heads = [t for name, t in self.parameters.items() if not name.startswith("layers.")]
        body = [t for name, t in self.parameters.items() if name.startswith("layers.")]
        groups = [{"params": body, "factor": 1.0}, {"params": heads, "factor": HEAD_RATE}]
        self.optimiser = torch.optim.AdamW(groups, lr=stage.peak, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
        self.verifier: Verifier = assemble(
            base.encoder.network, base.encoder.weights, self.parameters, rounded, torch.bfloat16
        )

    def step(self, number: int, rows: Sequence[Labelled]) -> tuple[float, float]:
        """One step; returns the losses of classes and tokens."""
        taught = lesson(rows, self.base.tokens)
        classes, tokens = loss(read(self.verifier, taught.batch), taught)
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(classes + TOKEN_SHARE * tokens)
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), CLIP)
        for group in self.optimiser.param_groups:
            group["lr"] = rate(number, self.total, self.stage.peak) * group["factor"]
        self.optimiser.step()
        return float(classes.detach()), float(tokens.detach())

    def trained(self) -> dict[str, Tensor]:
        return {name: t.detach().clone() for name, t in self.parameters.items()}


def asked_to_stop() -> Callable[[], bool]:
    """Tells whether SIGTERM or SIGINT came: then the step that runs is finished and a checkpoint is written."""
    came: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _frame: came.append(which))
    return lambda: bool(came)


def plan_of(seed: int, stage: Stage, rows: Sequence[Labelled]) -> str:
    """16 hex digits of everything that the order of examples depends on."""
    shape = "|".join(f"{len(r.row.premise)},{r.row.length},{r.labels}" for r in rows)
    return hashlib.sha256(f"{seed} {stage} {BUDGET} {shape}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Run:
    """What all stages of a training have in common. `minutes`: between two checkpoints."""

    data: Path
    out: Path
    seed: int
    minutes: float
    stop: Callable[[], bool]
    now: Callable[[], float] = time.monotonic
    stages: Sequence[Stage] = STAGES
    fold: int | None = None
    """Of `FOLDS`: its groups are left out of what people judged. None: nothing is."""

    def left_out(self, group: str) -> bool:
        return self.fold is not None and fold_of(group, FOLDS) == self.fold


def run_stage(run: Run, base: Base, start: Checkpoint | None) -> Checkpoint | None:
    """Train one stage from `start` (None: from the base) on. None where it was told to stop; a checkpoint is there.

    Raises:
        CheckpointError: `start` was made with other data, settings or code.
    """
    number, at, spent = (start.stage, start.step, start.seconds) if start else (0, 0, 0.0)
    stage = run.stages[number]
    print(f"stage {number + 1} of {len(run.stages)}: reading the data", flush=True)
    rows = tokenised(_passages(run, number, base.tokens), base.tokens)
    order = steps(rows, BUDGET, run.seed + number)
    plan = plan_of(run.seed, stage, rows)
    trainer = Trainer(base, stage, start.parameters if start else _fresh(base, run.seed), len(order))
    if start and at:
        if start.plan != plan:
            raise CheckpointError(
                f"{run.out / checkpoints.LATEST} was made with other data, settings or code: give another --out, or "
                f"keep what stage {number} left (stage-{number}.pt, as {checkpoints.LATEST}) and begin the stage anew"
            )
        trainer.optimiser.load_state_dict(dict(start.optimiser))
    claims = sum(len(r.labels) for r in rows)
    print(f"{len(rows)} premises, {claims} claims, {len(order)} steps; beginning at step {at}", flush=True)
    saved = reported = run.now()
    losses: list[tuple[float, float]] = []
    while at < len(order):
        losses.append(trainer.step(at, [rows[i] for i in order[at]]))
        at += 1
        if len(losses) == REPORT or at == len(order):
            now = run.now()
            print(_progress(at, len(order), losses, now - reported), flush=True)
            spent += now - reported
            reported, losses = now, []
        if at < len(order) and (run.stop() or run.now() - saved > run.minutes * 60):
            state = trainer.optimiser.state_dict()
            checkpoints.save(run.out, Checkpoint(number, at, plan, trainer.trained(), state, spent))
            saved = run.now()
            print(f"checkpoint at step {at}", flush=True)
            if run.stop():
                return None
    done = Checkpoint(number + 1, 0, "", trainer.trained(), {}, spent)
    checkpoints.save(run.out, done, f"stage-{number + 1}.pt")
    checkpoints.save(run.out, done)
    return done


def _passages(run: Run, number: int, tokens: Tokens) -> list[Passage]:
    stage = run.stages[number]
    found = examples.stage(run.data, run.seed + number, stage.share)
    if stage.people:
        judged = people.passages(run.data, lambda texts: [len(ids) for ids in tokens.cut(texts)], run.left_out)
        found += judged * stage.people
    return found


def _fresh(base: Base, seed: int) -> dict[str, Tensor]:
    return initial(base.tensors, base.encoder.network, seed)


def _progress(at: int, total: int, losses: Sequence[tuple[float, float]], seconds: float) -> str:
    classes, tokens = (sum(pair[k] for pair in losses) / len(losses) for k in (0, 1))
    each = seconds / len(losses)
    return (
        f"step {at}/{total}  classes {classes:.3f}  tokens {tokens:.3f}  {each:.2f} s a step, "
        f"about {each * (total - at) / 60:.0f} min left"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train the verifier; goes on from the last checkpoint.")
    parser.add_argument("--data", type=Path, required=True, help="folder with labelled/ and nli/")
    parser.add_argument("--out", type=Path, default=Path("build/verifier"), help="where checkpoints go")
    parser.add_argument("--stages", type=int, default=len(STAGES), help="stop after so many stages")
    parser.add_argument("--fold", type=int, choices=range(FOLDS), help="leave these groups out of what people judged")
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--checkpoint-minutes", type=float, default=4.0)
    parser.add_argument("--models-dir", type=Path, default=default_dir(os.environ))
    chosen = parser.parse_args(arguments)
    for name in ("labelled", "nli"):
        if not (chosen.data / name).is_dir():
            parser.error(f"{chosen.data} has no folder {name}: give --data the folder of the labelled sets")
    torch.set_num_threads(chosen.threads)
    run = Run(chosen.data, chosen.out, chosen.seed, chosen.checkpoint_minutes, asked_to_stop(), fold=chosen.fold)
    try:
        base = load_base(ready_model(chosen.models_dir, BASE))
        checkpoint = checkpoints.latest(run.out)
        while (checkpoint.stage if checkpoint else 0) < min(chosen.stages, len(STAGES)):
            checkpoint = run_stage(run, base, checkpoint)
            if checkpoint is None:
                print("stopped; the same command goes on from here")
                return
            print(kept_back_figures(run.data, base.encoder, base.tokens, checkpoint.parameters, run.seed), flush=True)
    except (CheckpointError, ModelError) as error:
        sys.exit(str(error))
    print(f"all stages asked for are done: {chosen.out}")


if __name__ == "__main__":
    main()
