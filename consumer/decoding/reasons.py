"""Why a record was refused, and what was repaired in one that was not: two closed lists, both counted by reason."""

from __future__ import annotations

from enum import StrEnum

INTERNAL_ERROR = "internal_error"
"""A dead letter's reason beside the refusals: decoding went well, and a fault of ours came after it."""


class Refusal(StrEnum):
    """Reasons of a dead letter. A new one is a change of contract (docs/events.md has the table)."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    TOO_MANY_CHUNKS = "too_many_chunks"
    TOO_MANY_CHARACTERS = "too_many_characters"
    BAD_ENCODING = "bad_encoding"
    UNSUPPORTED_FORMAT = "unsupported_format"
    CORRUPT_GZIP = "corrupt_gzip"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    BATCH = "batch_of_records"
    DUPLICATE_KEY = "duplicate_key"
    UNRECOGNISED = "unrecognised"
    MISSING_CONTEXTS = "missing:contexts"
    MISSING_ANSWER = "missing:answer"
    INCOMPLETE_CONTEXTS = "incomplete:contexts"
    INCOMPLETE_ANSWER = "incomplete:answer"
    BAD_CONTEXT_SHAPE = "bad_context_shape"
    BAD_ANSWER_SHAPE = "bad_answer_shape"
    DECODER_FAULT = "decoder_fault"
    """A fault of ours; please report it with the record's shape."""
    REDACTION_TIMEOUT = "redaction_timeout"


class Repair(StrEnum):
    """What was put right in a record that is scored all the same."""

    BOM = "bom"
    GZIP = "gzip"
    DOUBLE_ENCODED = "double_encoded"
    TEXT_BEFORE_JSON = "text_before_json"
    DUPLICATE_KEY = "duplicate_key"
    SURROGATE = "surrogate"
    NON_FINITE_NUMBER = "non_finite_number"
    BAD_NUMBER = "bad_number"
    NUMBER_IN_TEXT = "number_in_text"
    PYTHON_REPR = "python_repr"
    NULL_CONTEXTS = "null_contexts"
    NULL_CHUNK = "null_chunk"
    BLANK_CHUNK = "blank_chunk"
    WORD_LEFT_OUT = "word_left_out"
    REPEATED_CHUNK = "repeated_chunk"
    PROMPT_SPLIT = "prompt_split"
    FOUND_BY_NAME = "found_by_name"
    NO_TIME = "no_time"
    BAD_TIME = "bad_time"
    AMBIGUOUS_TIME = "ambiguous_time"
    BAD_ID = "bad_id"
    LONG_ID = "long_id"
    BAD_FEEDBACK = "bad_feedback"
    BAD_TURN = "bad_turn"
    BAD_REFERENCE = "bad_reference"
    BAD_LABEL = "bad_label"
    MANY_STATEMENTS = "many_statements"


class DecodeError(Exception):
    """A record that cannot be scored: the only exception that decoding raises.

    `reason` is a `Refusal`; `detail` says what was found and what to do, and never quotes the record's text.
    """

    def __init__(self, reason: Refusal, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason: str = reason.value
        self.detail = detail
