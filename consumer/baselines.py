"""The baseline file that the settings name."""

from __future__ import annotations

from pathlib import Path

from metrics.baseline import Baseline, BaselineError, decode_baseline


def read_baseline(file: Path) -> Baseline:
    """Read a baseline.

    Raises:
        BaselineError: the file cannot be read, or holds no baseline; the message names it and says what to do.
    """
    try:
        return decode_baseline(file.read_bytes())
    except OSError as error:
        raise BaselineError(f"baseline {file}: cannot be read: {error.strerror}") from None
    except BaselineError as error:
        raise BaselineError(f"baseline {file}: {error}") from None
