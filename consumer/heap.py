"""A setting of the C library's allocator that keeps a process's resident memory near what it uses."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_MEGABYTE = 1 << 20


def keep_heap_small(heaps: int) -> None:
    """Large blocks (a model's activations, of another size in every batch) go back to the system when they are freed,
    and all threads share `heaps` heaps: one is smallest, more keep busy threads from waiting for each other.

    glibc raises its threshold for that with every large block that is freed, so that batches of varying size leave a
    heap of holes behind; a threshold that is set stays. Elsewhere than on glibc nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, heaps)
        mallopt(_MMAP_THRESHOLD, _MEGABYTE)
        mallopt(_TRIM_THRESHOLD, _MEGABYTE)


def give_heap_back() -> None:
    """Return what is free inside the heap to the system: the C library itself only does so at its end. It takes some
    milliseconds; elsewhere than on glibc nothing happens.
    """
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
