"""What every model in this process needs: the folder where prepared ones lie, and a torch that leaves room."""

from __future__ import annotations

import os
from pathlib import Path

from consumer.settings import Embedding
from metrics.model_files import ModelError
from metrics.model_store import default_dir


def models_dir(settings: Embedding) -> Path:
    return settings.models_dir or default_dir(os.environ)


def prepare_torch(threads: int) -> None:
    """Load torch with that many threads; 0: as many as there are cores.

    Raises:
        ModelError: it is not installed.
    """
    # libgomp reads this when torch is imported: waiting threads that spin starve whatever else runs on the machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import torch
    except ImportError as error:
        raise ModelError(f"{error}: pip install 'groundwatch[models]'") from None
    torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
