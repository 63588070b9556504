"""Case files in Redis: bounded in number and time, idempotent by event id and content, found by what they are about.

The layout in Redis is described in docs/cases.md. Only redacted text comes here, and it leaves with its time-to-live
even if no process of ours runs any more.
"""

from __future__ import annotations

import logging
import secrets
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from consumer import case_scripts
from consumer.case_file import CaseFile, decode_case, encode_case
from consumer.case_filter import (
    NO_LABEL,
    SIGNATURE_BITS,
    CaseFilter,
    case_key,
    case_time,
    folded,
    key_of,
    name_digest,
    searched_text,
    signature,
    terms_of,
)
from consumer.event_ids import forms_of
from consumer.label import VERDICTS, Label, LabelChange, Verdict, decode_label, encode_label
from consumer.logs import one_line, without_credentials
from consumer.record import RecordRejected
from consumer.settings import Settings

log = logging.getLogger(__name__)

SCHEMA = 1
PREFIX = f"{{groundwatch}}:cases:{SCHEMA}:"
"""A new layout has a new number; case files of the old one leave with their time-to-live."""
ANSWER_SECONDS = 2.0
PUT_BATCH = 20
LOOK = 2000
"""Cases that one call looks at: some milliseconds, in which Redis serves nobody else."""
FIRST_LOOK = 200
FETCH = 100
SAME_NAME = 1000
"""Cases of one id or trace that are found at the most."""
HOUR = 3600.0
DAY = 86_400.0


class CaseStoreError(Exception):
    """Redis is away or refuses; one line without credentials. `full`: it has no memory left."""

    def __init__(self, message: str, full: bool = False) -> None:
        super().__init__(message)
        self.full = full


class CaseStore:
    """Case files of one Redis. Every method raises `CaseStoreError` where Redis does not do its part."""

    def __init__(self, url: str, *, ttl_seconds: float, most: int, label_seconds: float = 30 * DAY) -> None:
        """Cases leave after `ttl_seconds` and labels after `label_seconds`, though never before their cases; `most` is
        how many there are of either."""
        self._shown = without_credentials(url)
        self._ttl = ttl_seconds
        self._label_seconds = max(label_seconds, ttl_seconds)
        self._most = most
        try:
            self._client = redis.Redis.from_url(
                url,
                socket_timeout=ANSWER_SECONDS,
                socket_connect_timeout=ANSWER_SECONDS,
                retry=Retry(NoBackoff(), 0),
                decode_responses=False,
                protocol=2,
            )
        except ValueError as error:
            raise CaseStoreError(
                one_line(f"redis.cases_url cannot be used: {without_credentials(str(error))}")
            ) from None
        script = self._client.register_script
        self._put = script(case_scripts.PUT)
        self._sweep = script(case_scripts.SWEEP)
        self._drop = script(case_scripts.DROP)
        self._forget = script(case_scripts.FORGET)
        self._match = script(case_scripts.MATCH)
        self._label = script(case_scripts.LABEL)

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except redis.OutOfMemoryError as error:
            raise CaseStoreError(one_line(f"Redis at {self._shown} is full: {error}"), full=True) from None
        except redis.ReadOnlyError as error:
            # After a failover: the next connection may reach the new primary.
            self._client.connection_pool.disconnect(inuse_connections=False)
            raise CaseStoreError(one_line(f"Redis at {self._shown} is a replica: {error}")) from None
        except redis.AuthenticationError:
            raise CaseStoreError(f"Redis at {self._shown} refuses the password; check redis.cases_url") from None
        except (redis.ConnectionError, redis.TimeoutError, OSError, ValueError) as error:
            raise CaseStoreError(one_line(f"Redis at {self._shown} does not answer: {error}")) from None
        except redis.RedisError as error:
            full = "OOM" in str(error)
            raise CaseStoreError(one_line(f"Redis at {self._shown} refuses: {error}"), full=full) from None

    def put(self, cases: Iterable[CaseFile], now: float) -> Counter[str]:
        """Store cases; one with the same id and content replaces the one that is there.

        Returns how many were `stored`, `expired` (older than the time-to-live), `forgotten` (removed on demand before),
        and how many of the oldest were `dropped` to keep the cap. After an error all of them may be put again.
        """
        outcomes: Counter[str] = Counter()
        left = iter(cases)
        while batch := list(islice(left, PUT_BATCH)):
            with self._asking():
                pipeline = self._client.pipeline(transaction=False)
                for case in batch:
                    self._put(keys=[PREFIX], args=self._arguments(case, now), client=pipeline)
                for outcome, dropped in pipeline.execute():
                    outcomes[outcome.decode()] += 1
                    outcomes["dropped"] += dropped
        return outcomes

    def _arguments(self, case: CaseFile, now: float) -> list[Any]:
        record = case.record
        names = [name_digest(name) for name in (record.id, record.trace_id) if name]
        terms = "".join(f"t{term}\n" for term in terms_of(case)) + "".join(f"n{name}\n" for name in names)
        expires = min(record.scored_time, now) + self._ttl
        body = zlib.compress(encode_case(case), 1)
        text = searched_text(case)
        return [
            case_key(case), repr(now), repr(case_time(case)), repr(expires), self._most, body, text, terms,
            signature(text).to_bytes(SIGNATURE_BITS // 8, "little"),
        ]  # fmt: skip

    def sweep(self, now: float, most: int = 500) -> tuple[int, int]:
        """Remove at most `most` expired cases and as many over the cap, with all traces; how many of each."""
        with self._asking():
            expired, dropped = self._sweep(keys=[PREFIX], args=[repr(now), self._most, most])
        return int(expired), int(dropped)

    def drop_oldest(self, count: int) -> int:
        """Remove the oldest cases to make room; how many there were."""
        with self._asking():
            return int(self._drop(keys=[PREFIX], args=[count]))

    def count(self, now: float) -> int:
        """Cases that are there and not expired."""
        with self._asking():
            return int(self._client.zcount(f"{PREFIX}expiry", f"({now!r}", "+inf"))

    def keys(self, wanted: CaseFilter, limit: int | None = None) -> list[str]:
        """Keys of the cases that match, newest event first."""
        return list(islice(self._matching(wanted, limit), limit))

    def select(self, wanted: CaseFilter, limit: int | None = None) -> Iterator[CaseFile]:
        """The cases that match, newest event first; they are fetched as they are asked for."""
        matching = islice(self._matching(wanted, limit), limit)
        while batch := list(islice(matching, FETCH)):
            yield from self.get(batch)

    def get(self, keys: Sequence[str]) -> list[CaseFile]:
        """Those of the cases that are there, in order."""
        with self._asking():
            pipeline = self._client.pipeline(transaction=False)
            for key in keys:
                pipeline.hget(f"{PREFIX}case:{key}", "body")
            bodies = pipeline.execute()
        return [case for key, body in zip(keys, bodies, strict=True) if (case := _decoded(key, body)) is not None]

    def find(self, reference: str) -> list[CaseFile]:
        """The cases that `reference` names: an event id or a trace id (as it was logged, or as the record has it), a
        case key, or the 32 digits that an exemplar on /metrics shows of a long id. Newest event first: one id may have
        had several contents."""
        keys = {reference} if _is_hex(reference, 48) else set()
        digests = [*map(name_digest, forms_of(reference)), *([reference] if _is_hex(reference, 32) else [])]
        with self._asking():
            for digest in digests:
                found: Any = self._client.zrangebylex(f"{PREFIX}names", f"[{digest}", f"({digest}g", 0, SAME_NAME)
                keys.update(member.decode()[32:] for member in found)
        return sorted(self.get(sorted(keys)), key=case_time, reverse=True)

    def terms(self, keys: Sequence[str]) -> list[tuple[str, ...]]:
        """What each of these cases is found by (see `terms_of`), in order; nothing for one that is gone."""
        if not keys:
            return []
        with self._asking():
            held: Any = self._client.hmget(f"{PREFIX}terms", list(keys))
        lines = [b"" if terms is None else terms for terms in held]
        return [tuple(line[1:].decode() for line in text.split(b"\n") if line.startswith(b"t")) for text in lines]

    def sizes(self, terms: Sequence[str]) -> list[int]:
        """How many cases are found by each of these terms."""
        with self._asking():
            pipeline = self._client.pipeline(transaction=False)
            for term in terms:
                pipeline.zcard(f"{PREFIX}term:{term}")
            return [int(size) for size in pipeline.execute()]

    def event_times(self, keys: Sequence[str]) -> list[float | None]:
        """When each answer was given (seconds since the epoch), in order; None for a case that is gone."""
        with self._asking():
            return list(self._client.zmscore(f"{PREFIX}time", list(keys))) if keys else []

    def forget(self, keys: Iterable[str]) -> int:
        """Remove cases at once and for good: reading the topic again does not bring them back. How many there were."""
        with self._asking():
            return sum(int(self._forget(keys=[PREFIX], args=[key])) for key in keys)

    def index_labels(self, changes: Iterable[LabelChange], now: float) -> None:
        """Have the labels stand beside the cases, whether these are there or come later. What stands in Kafka is the
        truth: the same changes in the same order, told again, leave the same labels."""
        left = iter(changes)
        while batch := list(islice(left, PUT_BATCH)):
            with self._asking():
                pipeline = self._client.pipeline(transaction=False)
                for change in batch:
                    self._label(keys=[PREFIX], args=self._label_arguments(change, now), client=pipeline)
                pipeline.execute()

    def _label_arguments(self, change: LabelChange, now: float) -> list[Any]:
        label, name = change.label, name_digest(change.id)
        if label is None or label.labelled_time <= now - self._label_seconds:
            return [name, "", "", "", "0", "0", 0]
        key, leave = key_of(label.id, label.content_hash), repr(now - self._label_seconds)
        return [name, key, label.verdict, encode_label(label), repr(label.labelled_time), leave, self._most]

    def labels(self, cases: Sequence[CaseFile]) -> dict[str, Label]:
        """By case key, the labels of those of `cases` that have one."""
        if not cases:
            return {}
        names = list(dict.fromkeys(name_digest(case.record.id) for case in cases))
        with self._asking():
            bodies: Any = self._client.hmget(f"{PREFIX}label", names)
        wanted = {case_key(case) for case in cases}
        found = {key_of(label.id, label.content_hash): label for label in map(_label, bodies) if label is not None}
        return {key: label for key, label in found.items() if key in wanted}

    def shared_secret(self) -> bytes:
        """32 bytes, made by whoever asks first, the same for everybody who may read the cases."""
        with self._asking():
            self._client.set(f"{PREFIX}secret", secrets.token_bytes(32), nx=True)
            found: Any = self._client.get(f"{PREFIX}secret")
        return bytes(found or b"")

    def keep_changes(self, changes: bytes) -> None:
        """In place of those that were kept before; for as long as case files."""
        with self._asking():
            self._client.set(f"{PREFIX}changes", changes, ex=int(self._ttl))

    def kept_changes(self) -> bytes | None:
        """What `keep_changes` was given last."""
        with self._asking():
            found: Any = self._client.get(f"{PREFIX}changes")
        return None if found is None else bytes(found)

    def newest_labels(self, verdict: Verdict, limit: int) -> list[Label]:
        """The latest labels of that verdict, newest first, whether their cases are still there or not."""
        with self._asking():
            names: Any = self._client.zrevrange(f"{PREFIX}labels:{verdict}", 0, limit - 1)
            bodies: Any = self._client.hmget(f"{PREFIX}label", names) if names else []
        return [label for label in map(_label, bodies) if label is not None]

    def label_counts(self) -> dict[Verdict, int]:
        """How many labels there are of each verdict."""
        with self._asking():
            return {verdict: int(self._client.zcard(f"{PREFIX}labels:{verdict}")) for verdict in VERDICTS}

    def _matching(self, wanted: CaseFilter, limit: int | None) -> Iterator[str]:
        """Walks the shortest index that bounds the answer from its newest end, and has Redis test the rest."""
        groups = wanted.groups()
        needle = folded(wanted.text)
        index = self._shortest(
            [f"{PREFIX}term:{group[0]}" for group in groups if len(group) == 1 and group[0] != NO_LABEL]
        )
        sizes: list[Any] = [part for group in groups for part in (len(group), *group)]
        look = FIRST_LOOK if limit is not None and limit < FIRST_LOOK else LOOK
        pages = self._mentioning(needle, index, wanted) if signature(needle) else self._walk(index, wanted, look)
        for members in pages:
            with self._asking():
                found = self._match(keys=[PREFIX], args=[needle, len(groups), *sizes, *members])
            yield from (member.decode() for member in found)

    def _mentioning(self, needle: str, index: str, wanted: CaseFilter) -> Iterator[list[bytes]]:
        """As `_walk`, but for the newest only those whose signature allows that they hold `needle`."""
        newest: list[bytes] = next(self._walk(index, wanted, FIRST_LOOK), [])
        if newest:
            yield newest
        if len(newest) < FIRST_LOOK:
            return
        bits = signature(needle)
        seen = set(newest)
        possible: list[Any] = [member for member in self._allowing(bits) if member not in seen]
        with self._asking():
            times: list[Any] = []
            for start in range(0, len(possible), LOOK):
                times += self._client.zmscore(index, possible[start : start + LOOK])
        since = float("-inf") if wanted.since is None else wanted.since
        until = float("inf") if wanted.until is None else wanted.until
        dated = ((at, m) for at, m in zip(times, possible, strict=True) if at is not None and since <= at < until)
        ordered = [member for _, member in sorted(dated, reverse=True)]
        for start in range(0, len(ordered), LOOK):
            yield ordered[start : start + LOOK]

    def _allowing(self, bits: int) -> list[bytes]:
        """Those whose signature has all of `bits`. A part of the signatures at a time: all at once would take 40 MB."""
        found: dict[bytes, None] = {}
        cursor = -1
        while cursor != 0:
            with self._asking():
                answer: Any = self._client.hscan(f"{PREFIX}signatures", max(cursor, 0), count=LOOK)
            cursor, part = answer
            for member, signed in part.items():
                if int.from_bytes(signed, "little") & bits == bits:
                    found[member] = None
        return list(found)

    def _shortest(self, indexes: Sequence[str]) -> str:
        if not indexes:
            return f"{PREFIX}time"
        with self._asking():
            pipeline = self._client.pipeline(transaction=False)
            for index in indexes:
                pipeline.zcard(index)
            sizes = pipeline.execute()
        return min(zip(sizes, indexes, strict=True))[1]

    def _walk(self, index: str, wanted: CaseFilter, look: int) -> Iterator[list[bytes]]:
        low = "-inf" if wanted.since is None else repr(wanted.since)
        high = "+inf" if wanted.until is None else f"({wanted.until!r}"
        skip = 0
        while True:
            with self._asking():
                part: Any = self._client.zrevrangebyscore(
                    index, high, low, start=skip, num=look, withscores=True, score_cast_func=float
                )
            if not part:
                return
            yield [member for member, _ in part]
            if len(part) < look:
                return
            # Goes on at the score of the last one, past those of that score that were seen: what is stored meanwhile
            # shifts nothing.
            last = part[-1][1]
            seen = sum(1 for _, score in part if score == last)
            skip = skip + seen if high == repr(last) else seen
            high, look = repr(last), LOOK


def open_store(settings: Settings) -> CaseStore:
    """The store that the settings name.

    Raises:
        CaseStoreError: the URL cannot be read.
    """
    cases = settings.cases
    return CaseStore(
        settings.redis.cases_url,
        ttl_seconds=cases.ttl_hours * HOUR,
        most=cases.most,
        label_seconds=settings.labels.days * DAY,
    )


def _decoded(key: str, body: bytes | None) -> CaseFile | None:
    if body is None:
        return None
    try:
        return decode_case(zlib.decompress(body))
    except (zlib.error, RecordRejected) as error:
        log.warning("case %s in Redis cannot be read: %s", key, error)
        return None


def _label(body: bytes | None) -> Label | None:
    if body is None:
        return None
    try:
        return decode_label(body)
    except RecordRejected as error:
        log.warning("a label in Redis cannot be read: %s", error)
        return None


def _is_hex(text: str, digits: int) -> bool:
    return len(text) == digits and not set(text) - set("0123456789abcdef")
