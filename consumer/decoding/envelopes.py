"""Envelopes: what connectors, brokers, clouds and log shippers put around a record. Each is recognised by its keys.

An envelope may tell a time and an id; they are used where the record inside has none of its own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from consumer.decoding.json_bytes import Read, read_bytes
from consumer.decoding.opened import opened, unprinted
from consumer.decoding.reasons import DecodeError, Refusal

MAX_LAYERS = 8
MAX_HEAD = 500
"""Characters of a log line's head."""


@dataclass(slots=True)
class Outer:
    """What the envelopes told, the outermost first; `deleted` is a change-data record of a deleted row."""

    names: list[str] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Inside:
    """One layer taken off."""

    body: Any
    time: Any = None
    id: Any = None


Opener = Callable[[dict[str, Any]], Inside | None]


def take_off(document: Any, read: Read, outer: Outer, *, max_bytes: int, max_depth: int, gzip_allowed: bool) -> Any:
    """`document` without its envelopes; their names, times and ids are added to `outer`.

    Raises:
        DecodeError: batch_of_records, unsupported_format or a fault of the bytes inside an envelope.
    """
    for _ in range(MAX_LAYERS):
        document = opened(document)
        if isinstance(document, list):
            if len(document) != 1 or not isinstance(opened(document[0]), dict):
                return document
            outer.names.append("list")
            document = opened(document[0])
        if not isinstance(document, dict):
            return document
        found = _opened_by(document)
        if found is None:
            return document
        name, inside = found
        outer.names.append(name)
        outer.times.append(inside.time)
        outer.ids.append(inside.id)
        if inside.body is None:
            outer.deleted = True
            return None
        document = inside.body
        if isinstance(document, (bytes, str)):
            raw = document if isinstance(document, bytes) else document.encode()
            inner = read_bytes(raw, max_bytes=max_bytes, max_depth=max_depth, gzip_allowed=gzip_allowed)
            read.schema_id = inner.schema_id or read.schema_id
            read.repairs += inner.repairs
            read.conflicts |= inner.conflicts
            document = inner.document
    return document


def _opened_by(document: dict[str, Any]) -> tuple[str, Inside] | None:
    for name, opener in _OPENERS:
        inside = opener(document)
        if inside is not None:
            return name, inside
    return None


def decoded_base64(text: Any) -> bytes | None:
    """The bytes of a base64 text; None where it is none."""
    if not isinstance(text, str) or len(text) < 4:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _record(value: Any) -> Any:
    """An object, a text that holds one, or the bytes of a base64 text that holds one; None for anything else.

    A text stays a text here: reading it notes keys that stand twice.
    """
    inner = opened(value)
    if isinstance(inner, (dict, list)) and inner:
        return value
    printed = unprinted(value, []) if isinstance(value, str) and value.lstrip()[:1] == "{" else None
    if isinstance(printed, dict):
        return printed
    raw = decoded_base64(value)
    return raw if raw and (raw.lstrip()[:1] in (b"{", b"[") or raw[:1] in (b"\x00", b"\x1f")) else None


def _only(items: Any) -> Any:
    """The one item of a list.

    Raises:
        DecodeError: batch_of_records.
    """
    if isinstance(items, list) and len(items) > 1:
        raise DecodeError(
            Refusal.BATCH, f"{len(items)} records in one value; split them before the topic (one event a record)"
        )
    return items[0] if isinstance(items, list) and items else None


def _debezium(d: dict[str, Any]) -> Inside | None:
    if "op" in d and ("after" in d or "before" in d) and isinstance(d["op"], str):
        after = d.get("after")
        return Inside(after if isinstance(opened(after), dict) else None, d.get("ts_ms"))
    return None


def _connect(d: dict[str, Any]) -> Inside | None:
    if d.keys() <= {"schema", "payload"} and len(d) == 2 and (d["schema"] is None or isinstance(d["schema"], dict)):
        return Inside(d["payload"])
    return None


def _cloudevents(d: dict[str, Any]) -> Inside | None:
    if "specversion" not in d or "type" not in d:
        return None
    if "data_base64" in d:
        raw = decoded_base64(d["data_base64"])
        if raw is None:
            raise DecodeError(Refusal.UNSUPPORTED_FORMAT, "data_base64 of the CloudEvent is not base64")
        return Inside(raw, d.get("time"), d.get("id"))
    body = _record(d.get("data"))
    return None if body is None else Inside(body, d.get("time"), d.get("id"))


def _kafka_dump(d: dict[str, Any]) -> Inside | None:
    """What kcat -J, the REST proxy, an HTTP bridge or a cloud trigger writes for one Kafka record."""
    if "partition" not in d or "offset" not in d:
        return None
    time = d.get("timestamp", d.get("ts"))
    for key in ("value", "payload", "message", "value_base64", "valueBase64", "data", "body"):
        body = _record(d.get(key))
        if body is not None:
            return Inside(body, time)
    return None


def _rest_records(d: dict[str, Any]) -> Inside | None:
    records = d.get("records")
    if len(d) <= 4 and isinstance(records, list) and records and isinstance(records[0], dict) and "value" in records[0]:
        return Inside(_record(_only(records)["value"]))
    if isinstance(records, dict) and "eventSource" in d:
        return Inside(_only([record for group in records.values() if isinstance(group, list) for record in group]))
    return None


def _aws_records(d: dict[str, Any]) -> Inside | None:
    records = d.get("Records")
    if not isinstance(records, list) or not records or not isinstance(records[0], dict):
        return None
    record = _only(records)
    if isinstance(record.get("Sns"), dict):
        return Inside(record["Sns"], record["Sns"].get("Timestamp"))
    if isinstance(record.get("kinesis"), dict):
        return Inside(_record(record["kinesis"].get("data")), record["kinesis"].get("approximateArrivalTimestamp"))
    if isinstance(record.get("dynamodb"), dict):
        return Inside(record)
    body = _record(record.get("body"))
    sent = record.get("attributes")
    return None if body is None else Inside(body, sent.get("SentTimestamp") if isinstance(sent, dict) else None)


def _sns(d: dict[str, Any]) -> Inside | None:
    if "Message" in d and ("TopicArn" in d or d.get("Type") == "Notification"):
        body = _record(d["Message"])
        return None if body is None else Inside(body, d.get("Timestamp"), d.get("MessageId"))
    if "MessageId" in d and "Body" in d:
        body = _record(d["Body"])
        return None if body is None else Inside(body, None, d.get("MessageId"))
    return None


def _pubsub(d: dict[str, Any]) -> Inside | None:
    message = d.get("message")
    if "subscription" in d and isinstance(message, dict) and "data" in message:
        body = _record(message["data"])
        sent = message.get("publishTime", message.get("publish_time"))
        return None if body is None else Inside(body, sent, message.get("messageId", message.get("message_id")))
    if "publishTime" in d and ("messageId" in d or "message_id" in d) and "data" in d:
        body = _record(d["data"])
        return None if body is None else Inside(body, d["publishTime"], d.get("messageId"))
    return None


def _eventbridge(d: dict[str, Any]) -> Inside | None:
    if "detail-type" in d and "detail" in d:
        body = _record(d["detail"])
        return None if body is None else Inside(body, d.get("time"), d.get("id"))
    if "eventType" in d and "eventTime" in d and "data" in d:
        body = _record(d["data"])
        return None if body is None else Inside(body, d["eventTime"], d.get("id"))
    return None


def _cloudwatch(d: dict[str, Any]) -> Inside | None:
    events = d.get("logEvents")
    if isinstance(events, list) and events:
        event = _only(events)
        return (
            Inside(event.get("message"), event.get("timestamp"), event.get("id")) if isinstance(event, dict) else None
        )
    if isinstance(d.get("awslogs"), dict):
        raw = decoded_base64(d["awslogs"].get("data"))
        return None if raw is None else Inside(raw)
    return None


def _cloud_logging(d: dict[str, Any]) -> Inside | None:
    if "logName" not in d and "insertId" not in d:
        return None
    for key in ("jsonPayload", "textPayload", "protoPayload"):
        body = _record(d.get(key))
        if body is not None:
            return Inside(body, d.get("timestamp"), d.get("insertId"))
    return None


def _search_hit(d: dict[str, Any]) -> Inside | None:
    if "_source" in d and ("_index" in d or "_id" in d) and isinstance(d["_source"], dict):
        return Inside(d["_source"], None, d.get("_id"))
    return None


def _change_stream(d: dict[str, Any]) -> Inside | None:
    """MongoDB change streams, Maxwell, Canal, DMS, GoldenGate, Airbyte, DynamoDB streams."""
    if "operationType" in d and ("fullDocument" in d or "documentKey" in d):
        return Inside(d.get("fullDocument"), d.get("wallTime"))
    if isinstance(d.get("dynamodb"), dict) and "eventName" in d:
        image = d["dynamodb"].get("NewImage")
        return Inside(_typed(image) if isinstance(image, dict) else None,
                      d["dynamodb"].get("ApproximateCreationDateTime"))  # fmt: skip
    if "table" in d and "database" in d and "data" in d and isinstance(d.get("type"), str):
        if d["type"].lower() in ("delete", "bootstrap-delete"):
            return Inside(None)
        data = d["data"]
        return Inside(_only(data) if isinstance(data, list) else data, d.get("es", d.get("ts")))
    if "op_type" in d and "after" in d:
        return Inside(d["after"], d.get("op_ts"))
    metadata = d.get("metadata")
    if isinstance(metadata, dict) and "record-type" in metadata and isinstance(d.get("data"), dict):
        return Inside(d["data"], metadata.get("timestamp"))
    record = d.get("record")
    if d.get("type") == "RECORD" and isinstance(record, dict) and isinstance(record.get("data"), dict):
        return Inside(record["data"], record.get("emitted_at"))
    return None


def _typed(node: Any) -> Any:
    """DynamoDB's typed attributes (`{"S": "text"}`) as plain values."""
    if isinstance(node, dict) and len(node) == 1:
        (kind, value), *_ = node.items()
        if kind in ("S", "N", "BOOL", "B", "SS", "NS"):
            return value
        if kind == "NULL":
            return None
        if kind == "L" and isinstance(value, list):
            return [_typed(item) for item in value]
        if kind == "M" and isinstance(value, dict):
            return {name: _typed(item) for name, item in value.items()}
    return {name: _typed(item) for name, item in node.items()} if isinstance(node, dict) else node


_LINE_KEYS = ("message", "log", "msg", "line", "MESSAGE", "event", "body", "_raw", "textPayload", "rawMessage")
_SHIPPER_KEYS = {"@timestamp", "@version", "stream", "kubernetes", "docker", "container", "source_type", "host",
                 "hostname", "agent", "ecs", "level", "severity", "logger", "sourcetype", "ddsource", "date",
                 "fluentd_tag", "tag", "file", "time", "timestamp", "_HOSTNAME", "labels", "service", "logger_name",
                 "input", "offset", "source", "index", "facility", "appname", "pid", "log_level", "container_id",
                 "container_name", "timeUnixNano", "path", "type"}  # fmt: skip
_TIMES = ("@timestamp", "timestamp", "time", "date", "ts", "timeUnixNano", "__REALTIME_TIMESTAMP", "_time")


def _log_line(d: dict[str, Any]) -> Inside | None:
    """A log shipper's line: the record is a JSON text (or already an object) under `message`, `log`, `event`, ..."""
    if not d.keys() & _SHIPPER_KEYS or d.keys() & {"answer", "contexts"}:
        return None
    if isinstance(d.get("event"), dict) and isinstance(d["event"].get("original"), str) and "message" not in d:
        d = {**d, "message": d["event"]["original"]}
    for key in _LINE_KEYS:
        line = d.get(key)
        if isinstance(line, dict) and isinstance(line.get("stringValue"), str):
            line = line["stringValue"]
        body: Any = None
        if isinstance(line, str):
            start = line.find("{")
            # Before the object may stand the head of a log line: time, level, logger.
            if 0 <= start <= MAX_HEAD:
                body = _record(line[start:])
        elif isinstance(line, dict) and key in ("event", "log", "body") and d.keys() <= _SHIPPER_KEYS | {key, "fields"}:
            body = line
        if body and not isinstance(body, list):
            return Inside(body, next((d[name] for name in _TIMES if d.get(name) is not None), None))
    return None


def _loki(d: dict[str, Any]) -> Inside | None:
    streams = d.get("streams")
    if isinstance(streams, list) and streams and isinstance(streams[0], dict) and "values" in streams[0]:
        values = [stream.get("values") for stream in streams if isinstance(stream, dict)]
        entry = _only([value for group in values if isinstance(group, list) for value in group])
        if isinstance(entry, list) and len(entry) >= 2:
            return Inside(_record(entry[1]), entry[0])
    return None


def _gateway(d: dict[str, Any]) -> Inside | None:
    """An HTTP request as a gateway or a workflow tool hands it on; n8n's items."""
    if "body" in d and d.keys() & {"requestContext", "httpMethod", "headers", "webhookUrl"} and "response" not in d:
        body = _record(d["body"])
        return None if body is None else Inside(body)
    if d.keys() <= {"json", "pairedItem", "binary", "index"} and isinstance(d.get("json"), dict):
        return Inside(d["json"])
    return None


def _analytics(d: dict[str, Any]) -> Inside | None:
    """Segment, PostHog, Amplitude and their like: a named event with properties."""
    for key in ("properties", "event_properties", "customDimensions", "custom_dimensions"):
        if isinstance(opened(d.get(key)), dict) and d.keys() & {"event", "event_type", "type", "name", "itemType"}:
            return Inside(d[key], d.get("timestamp", d.get("time")), d.get("messageId", d.get("uuid")))
    return None


_OPENERS: tuple[tuple[str, Opener], ...] = (
    ("debezium", _debezium),
    ("kafka_connect", _connect),
    ("cloudevents", _cloudevents),
    ("kafka_record", _kafka_dump),
    ("kafka_rest", _rest_records),
    ("aws_records", _aws_records),
    ("sns_sqs", _sns),
    ("pubsub", _pubsub),
    ("eventbridge", _eventbridge),
    ("cloudwatch", _cloudwatch),
    ("cloud_logging", _cloud_logging),
    ("search_hit", _search_hit),
    ("change_stream", _change_stream),
    ("loki", _loki),
    ("log_line", _log_line),
    ("gateway", _gateway),
    ("analytics", _analytics),
)
