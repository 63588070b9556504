"""The mark of tests that need the trained verifier, which a checkout has only once it is trained."""

from __future__ import annotations

import pytest

from metrics.verifier.shipped_files import FOLDER, WEIGHTS

needs_verifier = pytest.mark.skipif(
    not (FOLDER / WEIGHTS).is_file(),
    reason="no trained verifier in metrics/verifier/weights (docs/verifier-training.md)",
)
