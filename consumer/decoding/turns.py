"""Questions, answers and conversations in the shapes that the field logs: one reader for each.

A question may be a text, a list of messages (the last user message is the question, what came before is the
conversation) or an object around either; an answer may be a text, a list of parts, a message, or a whole response.
"""

from __future__ import annotations

from typing import Any

from consumer.decoding.opened import unprinted
from metrics.event import Turn

MAX_NESTING = 12

_ROLES = {
    "user": "user", "human": "user", "humanmessage": "user", "customer": "user", "you": "user", "question": "user",
    "humanmessagechunk": "user",
    "assistant": "assistant", "ai": "assistant", "aimessage": "assistant", "aimessagechunk": "assistant",
    "bot": "assistant", "gpt": "assistant", "model": "assistant", "chatbot": "assistant", "agent": "assistant",
    "answer": "assistant", "apimessage": "assistant", "usermessage": "user",
    "system": "system", "systemmessage": "system", "developer": "system",
    "tool": "tool", "function": "tool", "toolmessage": "tool", "functionmessage": "tool", "tool_result": "tool",
}  # fmt: skip
_ROLE_KEYS = ("role", "obj", "type", "author", "sender", "from", "speaker", "by", "__class__", "message.role")
_CONTENT_KEYS = ("content", "parts", "text", "value", "message", "contents", "message.content")
_MESSAGE_LISTS = ("messages", "chat_history", "history", "conversation", "contents", "message", "input_messages",
                  "input")  # fmt: skip
_QUESTION_KEYS = ("question", "query", "user_input", "input", "prompt", "text", "content", "message", "user_query",
                  "query_str", "value", "q", "parts", "sys.query", "search_query", "input_text")  # fmt: skip
_ANSWER_KEYS = ("answer", "output_text", "response", "result", "output", "text", "content", "message", "completion",
                "generated_text", "value", "parts", "choices", "candidates", "generations", "generation", "reply",
                "replies", "kwargs", "data", "outputs", "final_answer", "actual_output", "messages",
                "textResponse", "answerText", "return_values")  # fmt: skip
_NOT_SPOKEN = {"thinking", "redacted_thinking", "reasoning", "reasoning_content", "tool_use", "tool_call", "tool_calls",
               "tool_result", "tool_call_response", "function_call", "image", "image_url", "input_image", "document",
               "search_result", "file_search_call", "web_search_call", "function_call_output", "refusal_reason",
               "server_tool_use", "web_search_tool_result", "retrieval", "source", "citation",
               "source-document", "step-start"}  # fmt: skip


def role_of(message: Any) -> str | None:
    """`user`, `assistant`, `system` or `tool`; None where the message names no role that is known."""
    if not isinstance(message, dict):
        return None
    for key in _ROLE_KEYS:
        value = message.get(key)
        if isinstance(value, dict):
            value = value.get("role") or value.get("name")
        if isinstance(value, str) and value.lower() in _ROLES:
            return _ROLES[value.lower()]
    kind = message.get("id")
    if isinstance(kind, list) and kind and isinstance(kind[-1], str):
        return _ROLES.get(kind[-1].lower())
    if isinstance(message.get("message"), dict):
        return role_of(message["message"])
    return None


def turns_of(value: Any, repairs: list[str]) -> list[Turn] | None:
    """The turns of a list of messages, in order; None where `value` is no such list. Blank turns are left out."""
    value = unprinted(value, repairs)
    if isinstance(value, dict):
        inner = next((value[k] for k in _MESSAGE_LISTS if isinstance(value.get(k), list)), None)
        return None if inner is None else turns_of(inner, repairs)
    if not isinstance(value, list) or not value:
        return None
    if len(value) == 1 and isinstance(value[0], list) and value[0] and isinstance(value[0][0], (dict, list)):
        return turns_of(value[0], repairs)
    turns: list[Turn] = []
    for message in value:
        found = _message(message, repairs)
        if found is None:
            return None
        turns.extend(turn for turn in found if turn.content)
    return turns


def _message(message: Any, repairs: list[str]) -> list[Turn] | None:
    message = unprinted(message, repairs)
    if isinstance(message, list) and len(message) == 2:
        left, right = message
        if isinstance(left, str) and left.lower() in _ROLES:
            return [Turn(_ROLES[left.lower()], text_of(right, repairs) or "")]
        if isinstance(left, str) and (isinstance(right, str) or right is None):
            return [Turn("user", left.strip()), Turn("assistant", (right or "").strip())]
        return None
    role = role_of(message)
    if role is None:
        return None
    return [Turn(role, _content(message, repairs) or "")]


def _content(message: dict[str, Any], repairs: list[str]) -> str | None:
    if isinstance(message.get("kwargs"), dict):
        message = message["kwargs"]
    if isinstance(message.get("data"), dict) and "content" in message["data"]:
        message = message["data"]
    for key in _CONTENT_KEYS:
        value = message.get(key)
        if value is not None:
            return value.strip() if isinstance(value, str) else text_of(value, repairs)
    return None


def question_of(value: Any, repairs: list[str]) -> tuple[str | None, tuple[Turn, ...]] | None:
    """The question and the turns before it; None where `value` has no shape of a question."""
    return _question(value, repairs, 0)


def _question(value: Any, repairs: list[str], depth: int) -> tuple[str | None, tuple[Turn, ...]] | None:
    if depth > MAX_NESTING:
        return None
    if isinstance(value, str):
        inner = unprinted(value, [])
        if not isinstance(inner, str):
            found = _question(inner, repairs, depth + 1)
            if found is not None and found[0]:
                return found
        return value.strip(), ()
    turns = turns_of(value, repairs) if isinstance(value, list) else None
    if turns is not None:
        return _last_question(turns)
    if isinstance(value, list):
        if len(value) == 1 and not isinstance(value[0], (int, float)):
            return _question(value[0], repairs, depth + 1)
        text = text_of(value, repairs)
        return None if text is None else (text, ())
    if isinstance(value, dict):
        for key in _QUESTION_KEYS:
            if isinstance(value.get(key), str) and value[key].strip():
                question = _question(value[key], repairs, depth + 1)
                earlier = turns_of({k: value[k] for k in _MESSAGE_LISTS if k in value}, repairs)
                return question and (question[0], question[1] or _without(earlier or [], question[0]))
        if role_of(value) not in (None, "user"):
            return None
        for key in (*_MESSAGE_LISTS, *_QUESTION_KEYS):
            if isinstance(value.get(key), (list, dict)):
                found = _question(value[key], repairs, depth + 1)
                if found is not None and found[0]:
                    return found
    return None


def _without(turns: list[Turn], question: str | None) -> tuple[Turn, ...]:
    """The turns before `question` is asked: histories are logged with it and without it."""
    spoken = [turn for turn in turns if turn.role in ("user", "assistant")]
    for at in range(len(spoken) - 1, max(len(spoken) - 3, -1), -1):
        if spoken[at].role == "user" and spoken[at].content == question:
            return tuple(spoken[:at])
    return tuple(spoken)


def _last_question(turns: list[Turn]) -> tuple[str | None, tuple[Turn, ...]]:
    for at in range(len(turns) - 1, -1, -1):
        if turns[at].role == "user":
            return turns[at].content, tuple(t for t in turns[:at] if t.role in ("user", "assistant"))
    return None, ()


def answer_of(value: Any, repairs: list[str]) -> str | None:
    """The answer as one text; None where `value` has no shape of an answer (null is the caller's)."""
    if isinstance(value, str):
        inner = unprinted(value, [])
        if isinstance(inner, dict):
            # An answer may be JSON by right: only what looks like a response object is opened.
            if inner.keys() & {"content", "text", "answer", "output_text", "choices", "output", "response", "result",
                               "textResponse", "messages", "completion"}:  # fmt: skip
                found = text_of(inner, repairs)
                return value.strip() if found is None else found
        elif (
            isinstance(inner, list)
            and inner
            and all(isinstance(p, dict) and ("type" in p or role_of(p)) for p in inner)
        ):
            found = text_of(inner, repairs)
            return value.strip() if found is None else found
        return value.strip()
    return text_of(value, repairs)


def text_of(value: Any, repairs: list[str], depth: int = 0) -> str | None:
    """The words in a text, a list of parts or an object around them; None where there are none to be read."""
    if isinstance(value, str):
        return value.strip()
    if depth > MAX_NESTING or value is None:
        return None
    if isinstance(value, list):
        return _joined_parts(value, repairs, depth)
    if not isinstance(value, dict):
        return None
    nulls = False
    for key in _ANSWER_KEYS:
        if key not in value:
            continue
        inner = value[key]
        if isinstance(inner, str):
            # A printed message or a JSON body inside a known answer key is opened once more.
            return answer_of(inner, repairs) if depth < MAX_NESTING and inner[:1] in ("{", "[") else inner.strip()
        nulls = nulls or inner is None
        text = text_of(inner, repairs, depth + 1)
        if text is not None:
            return text
    return "" if nulls else None


def _joined_parts(parts: list[Any], repairs: list[str], depth: int) -> str | None:
    if not parts:
        return ""
    roles = [role_of(part) for part in parts]
    if any(role == "assistant" for role in roles):
        last = max(at for at, role in enumerate(roles) if role == "assistant")
        return text_of(parts[last], repairs, depth + 1)
    spoken: list[str] = []
    for part in parts:
        if isinstance(part, str):
            spoken.append(part)
        elif isinstance(part, dict):
            kind = part.get("type")
            if (isinstance(kind, str) and (kind in _NOT_SPOKEN or kind.startswith("tool"))) or part.get(
                "thought"
            ) is True:
                continue
            raw = next((part[k] for k in ("text", "content") if isinstance(part.get(k), str)), None)
            text = raw if raw is not None else text_of(part, repairs, depth + 1)
            if text is None and not part.keys() & {"functionCall", "toolUse", "tool_calls", "function_call"}:
                return None
            spoken.append(text or "")
            if "finish_reason" in part or "finishReason" in part:
                break  # the other choices are alternatives that the user did not see
        else:
            return None
    return _joined(spoken)


def _joined(pieces: list[str]) -> str:
    """Streamed pieces carry their own spaces; whole sentences side by side get one."""
    joined: list[str] = []
    last = ""
    for piece in pieces:
        if not piece:
            continue
        if last in _SENTENCE_ENDS and last and piece[0].isalnum() and piece[0].isascii():
            joined.append(" ")
        joined.append(piece)
        last = piece[-1]
    return "".join(joined).strip()


_SENTENCE_ENDS = ".!?:;)"
