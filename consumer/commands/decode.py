"""`groundwatch decode`: which form a record has, and what was read, field by field."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from consumer import settings
from consumer.cli import loaded_settings
from consumer.decode import Decoded, DecodeError, Decoder, MappingError
from consumer.decoding.reasons import Refusal, Repair
from metrics.event import to_native

SHOWN = 160
"""Characters of a text that the listing shows."""
SHOWN_CHUNKS = 8
FALLBACK = "record-"
_UNPACKED = (
    f"note: the file is unpacked here; on the topic a gzip value is refused as {Refusal.UNSUPPORTED_FORMAT}, "
    "unless decode.gzip = true"
)


@click.command(name="decode")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="One JSON object a record, with the whole event.")
@click.option("--form", default="", help="Read with this form only, as decode.form does.")
@click.pass_context
def command(ctx: click.Context, file: str, as_json: bool, form: str) -> None:
    """Show which form each record of FILE has and what was read from it.

    FILE is one JSON document, or JSON lines, plain or .gz; - reads standard input. Ends with 1 if a record is refused.
    """
    chosen = loaded_settings(ctx).settings.decode
    if form:
        chosen = chosen.model_copy(update={"form": form})
    try:
        decoder = Decoder(chosen)
    except MappingError as error:
        raise click.UsageError(str(error)) from None
    shown = _as_json if as_json else _as_text
    refused = total = 0
    raw = _read(file)
    body = _unpacked(file, raw)
    items = _items(body)
    if body is not raw and not chosen.gzip:
        click.echo(_UNPACKED, err=as_json)
    if items:
        click.echo(_listed(decoder, body, len(items)), err=as_json, nl=False)
    for number, value in enumerate(items or _records(body), 1):
        total += 1
        try:
            decoded = decoder.decode(value, fallback_id=f"{FALLBACK}{number}", broker_time=None)
        except DecodeError as error:
            refused += 1
            click.echo(_refusal_json(number, error) if as_json else _refusal_text(number, error, chosen))
        else:
            click.echo(shown(number, decoded))
    if total == 0:
        raise click.ClickException(f"{file} holds no record")
    if not as_json and total > 1:
        click.echo(f"{total - refused} of {total} records read, {refused} refused")
    if refused:
        sys.exit(1)


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from None


def _unpacked(file: str, raw: bytes) -> bytes:
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise click.UsageError(f"{file}: not a whole gzip file: {error}") from None


def _listed(decoder: Decoder, body: bytes, items: int) -> str:
    """A line that says how the scorer takes a list which is shown item by item here; blank where it reads it, too."""
    try:
        decoder.decode(body, fallback_id=FALLBACK, broker_time=None)
    except DecodeError as error:
        return (
            f"note: the {items} items of a JSON list are shown one by one; on the topic, as one record, the list is "
            f"refused as {error.reason}: write one event a record\n"
        )
    return ""


def _items(raw: bytes) -> list[bytes]:
    """The items of a JSON list of several objects; none of any other file."""
    if raw.lstrip()[:1] != b"[":
        return []
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    if len(document) < 2 or not all(isinstance(item, dict) for item in document):
        return []
    return [json.dumps(item).encode() for item in document]


def _records(raw: bytes) -> Iterator[bytes]:
    """The whole file where it is one JSON document (or no text), else the lines that are not blank."""
    lines = [line for line in raw.split(b"\n") if line.strip()]
    try:
        if raw[:1] not in (b"\x00", b"\x03"):
            json.loads(raw)
    except (ValueError, RecursionError):
        # A pretty-printed document with a fault in it is still one record: its lines are no JSON of their own.
        one = len(lines) == 1 or (bool(lines) and lines[0].strip() in (b"{", b"["))
        yield from [raw] if one else lines
        return
    if raw.strip():
        yield raw


def _as_json(number: int, decoded: Decoded) -> str:
    return json.dumps(
        {
            "record": number, "form": decoded.form, "envelopes": list(decoded.envelopes),
            "schema_id": decoded.schema_id, "ignored": decoded.ignored, "not_in_record": _not_in_record(decoded),
            "repairs": [str(repair) for repair in decoded.repairs],
            "event": to_native(decoded.event),
        },
        ensure_ascii=False,
    )  # fmt: skip


def _not_in_record(decoded: Decoded) -> list[str]:
    """The fields that the worker would fill from the record's position and the broker's time."""
    absent = ["id"] if decoded.event.id.startswith(FALLBACK) else []
    return [*absent, "timestamp"] if Repair.NO_TIME in decoded.repairs else absent


def _refusal_json(number: int, error: DecodeError) -> str:
    return json.dumps({"record": number, "refused": error.reason, "detail": error.detail}, ensure_ascii=False)


def _refusal_text(number: int, error: DecodeError, chosen: settings.Decode) -> str:
    lines = [f"record {number}: refused, {error.reason}", f"  {error.detail}"]
    if error.reason == Refusal.UNRECOGNISED and chosen.forms_dir is None:
        lines.append("  decode.forms_dir is not set; set it in groundwatch.toml or as GROUNDWATCH__DECODE__FORMS_DIR")
    return "\n".join(lines)


def _as_text(number: int, decoded: Decoded) -> str:
    event = decoded.event
    if decoded.ignored:
        return f"record {number}: ignored (the judge's own traffic, or a deleted row)"
    lines = [f"record {number}: form {decoded.form}"]
    if decoded.envelopes:
        lines.append(f"  envelopes     {' > '.join(decoded.envelopes)}")
    if decoded.schema_id:
        lines.append(f"  schema id     {decoded.schema_id}")
    absent = _not_in_record(decoded)
    lines.append(_field("id", "(none: topic-partition-offset is taken)" if "id" in absent else event.id))
    when = datetime.fromtimestamp(event.timestamp, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    lines.append(_field("timestamp", "(none: the broker's time is taken)" if "timestamp" in absent else when))
    lines.append(_field("question", event.question))
    lines += [f"  earlier {turn.role:<5} {_short(turn.content)}" for turn in event.conversation]
    lines.append(f"  contexts      {len(event.contexts)}")
    for at, chunk in enumerate(event.contexts[:SHOWN_CHUNKS], 1):
        about = [
            f"{name}={value}" for name, value in (("id", chunk.id), ("score", chunk.score), ("source", chunk.source))
            if value is not None
        ]  # fmt: skip
        lines.append(f"    {at:>3}. {_short(chunk.text)}" + (f"  ({', '.join(map(_short, about))})" if about else ""))
    if len(event.contexts) > SHOWN_CHUNKS:
        lines.append(f"    ... and {len(event.contexts) - SHOWN_CHUNKS} more")
    lines.append(_field("answer", event.answer))
    optional: tuple[tuple[str, Any], ...] = (
        ("reference", event.reference), ("trace_id", event.trace_id), ("feedback", event.feedback),
    )  # fmt: skip
    lines += [_field(name, value) for name, value in optional if value is not None]
    if event.labels:
        lines.append(_field("labels", ", ".join(f"{name}={value}" for name, value in event.labels.items())))
    counts = Counter(repair for repair in decoded.repairs if repair != Repair.NO_TIME)
    if counts:
        lines.append("  repairs       " + ", ".join(f"{r} x{n}" if n > 1 else str(r) for r, n in counts.items()))
    return "\n".join(lines)


def _field(name: str, value: Any) -> str:
    return f"  {name:<13} {'(none)' if value is None else '(blank)' if value == '' else _short(str(value))}"


def _short(text: str) -> str:
    """`text` on one line, shortened, without control characters that a terminal would obey."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}... ({len(text)} characters)"
