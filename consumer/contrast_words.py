"""A contrast in a line: what a row is about, and what explains the change. Label values stand as they came."""

from __future__ import annotations

from metrics.contrast import Contrast, Kind, Part, Side, Verdict


def subject(part: Part) -> str:
    """What a row is about.

    `kb_version 2026-11 in place of 2026-10`, `mix of lang`.
    """
    values, dimension = ", ".join(part.values), part.dimension
    match part.kind:
        case Kind.REPLACED:
            return f"{dimension} {values} in place of {', '.join(part.gone)}"
        case Kind.APPEARED:
            return f"{dimension} {values} (new since)"
        case Kind.VANISHED:
            return f"{dimension} {values} (gone since)"
        case Kind.MIX:
            return f"mix of {dimension} ({share(part.before)} to {share(part.after)} {part.values[0]})"
        case _:
            return f"{dimension} {values}"


def conclusion(contrast: Contrast) -> str:
    """One line: what explains the change, or why nothing does."""
    named = contrast.named
    if named:
        return "; ".join(f"{subject(part)}: {with_interval(part)}" for part in named)
    if not contrast.parts:
        return "nothing to tell apart: every label has one value only"
    if all(part.verdict is Verdict.TOO_FEW for part in contrast.parts):
        return "too few scores to tell the labels apart"
    if not contrast.real:
        return "no label explains anything, and the whole change is within what chance does"
    return "no label: the change is about the same for all their values, as far as these scores tell"


def with_interval(part: Part) -> str:
    """How much a row explains, with its 95 % interval; empty where there are too few scores."""
    return "" if part.size is None else f"{part.size:+.3f} [{part.low:+.3f}, {part.high:+.3f}]"


def share(side: Side) -> str:
    return f"{side.share:.1%}"
