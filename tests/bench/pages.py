"""A bench's table in a page of the docs, between two marks."""

from __future__ import annotations

from pathlib import Path


def put_table(page: Path | None, begin: str, table: str, end: str) -> None:
    """Print `table`, or put it between the lines `begin` and `end` of `page`, in place of what stands there."""
    if page is None:
        print(table)
        return
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}", encoding="utf-8")
