"""The evaluator that the settings ask for: embedder, cache, metrics."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from prometheus_client import CollectorRegistry

from consumer.settings import Embedding, Settings
from metrics.embedding import LocalEmbedder
from metrics.encoder import load_encoder
from metrics.evaluation import Evaluator
from metrics.model_files import read_manifest
from metrics.model_store import default_dir, ready_model
from metrics.similarity import build_metrics
from metrics.tokens import read_tokens


def build_evaluator(settings: Settings, registry: CollectorRegistry | None) -> Evaluator:
    """Raises:
    ModelError: the model cannot be had.
    ValueError: an unknown metric.
    """
    metrics = build_metrics(settings.scoring.metrics, settings.scoring.aggregation)
    return Evaluator(metrics, _local(settings.embedding), sketches=settings.scoring.sketch)


def models_dir(settings: Embedding) -> Path:
    return settings.models_dir or default_dir(os.environ)


def _local(settings: Embedding) -> LocalEmbedder:
    folder = ready_model(models_dir(settings), settings.model, settings.revision)
    manifest = read_manifest(folder)
    torch.set_num_threads(settings.threads or len(os.sched_getaffinity(0)))
    network = load_encoder(folder, "bf16")
    return LocalEmbedder(
        manifest.name,
        manifest.revision[:12],
        network.network.hidden,
        read_tokens(folder),
        network,
        lambda: load_encoder(folder, "fp32"),
        settings.window_overlap,
    )
