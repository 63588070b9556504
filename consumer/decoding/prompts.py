"""A prompt into which the passages were pasted, split into question and passages (English and Chinese patterns)."""

from __future__ import annotations

import re

from consumer.decoding.reasons import Repair

MAX_PROMPT = 400_000
MAX_TAGS = 2000

_CONTEXT_HEAD = re.compile(
    r"^[^\n:：]{0,60}?(?:context|passages|documents|sources|knowledge base|search results|已知信息|参考资料"
    r"|参考内容|上下文|知识库内容|知识库)[^\n:：]{0,80}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_QUESTION_HEAD = re.compile(
    r"^[-\s]*(?:user'?s? |human )?(?:question|query|问题|用户问题|用户的问题)[^\n:：]{0,12}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER_TAIL = re.compile(r"\n\s*(?:helpful answer|answer|response|回答|答案)\s*[:：]?\s*$", re.IGNORECASE)
_BLOCK = re.compile(
    r"<(context|documents|passages|sources|reference|references|data)>(.*)</\1>", re.IGNORECASE | re.DOTALL
)
_ITEM = re.compile(r"<(document|doc|passage|chunk|source)\b[^>]{0,200}>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_NUMBERED = re.compile(
    r"^[ \t]*(?:\[\d{1,3}\]:?|\(?\d{1,3}[.)](?=\s)|(?:document|passage|source|chunk|doc)\s*\[?\d{1,3}\]?\s*:)[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_RULE = re.compile(r"^\s*-{3,}\s*$|^\s*={3,}\s*$|^\s*`{3,}\s*$", re.MULTILINE)


def split_prompt(text: str, repairs: list[str]) -> tuple[str | None, list[str]] | None:
    """The question (None where only passages stand in the text) and the passages; None where no pattern is found."""
    if len(text) > MAX_PROMPT:
        return None
    block = _BLOCK.search(text) if text.count("<") <= MAX_TAGS else None
    if block:
        passages, rest = _passages(block.group(2)), text[block.end() :]
        head = _QUESTION_HEAD.search(rest)
        question = rest[head.end() :] if head else ""
    else:
        context = _CONTEXT_HEAD.search(text)
        if context is None:
            return None
        heads = [match for match in _QUESTION_HEAD.finditer(text) if match.start() >= context.end()]
        end = heads[-1].start() if heads else len(text)
        question = text[heads[-1].end() :] if heads else ""
        passages = _passages(text[context.end() : end])
    if not passages:
        return None
    repairs.append(Repair.PROMPT_SPLIT)
    return _ANSWER_TAIL.sub("", question).strip() or None, passages


def _passages(context: str) -> list[str]:
    if context.count("<") <= MAX_TAGS:
        tagged = [match.group(2).strip() for match in _ITEM.finditer(context)]
        if tagged:
            return [text for text in tagged if text]
    context = _RULE.sub("\n", context)
    numbered = _NUMBERED.split(context)
    if len(numbered) > 1 and not numbered[0].strip():
        return [part.strip() for part in numbered[1:] if part.strip()]
    return [part.strip() for part in re.split(r"\n[ \t]*\n", context) if part.strip()]


_SOURCED = re.compile(r"(?:\A|\n\s*\n)Source: (?P<source>[^\n]{0,2000})\n+Content: ")
_CITED = re.compile(r"\A出处 \[\d{1,4}\] \[(?P<source>[^\]\n]{0,500})\]\([^)\n]{0,2000}\)\s*")


def decorated(text: str) -> list[tuple[str, str | None]]:
    """A passage and its source where a retriever's tool put both into one text; several such passages are told apart.

    >>> decorated("Source: a.md\\nContent: Lamps shine.")
    [('Lamps shine.', 'a.md')]
    """
    cited = _CITED.match(text)
    if cited:
        return [(text[cited.end() :], cited.group("source"))]
    heads = list(_SOURCED.finditer(text)) if text.startswith("Source: ") else []
    if not heads:
        return [(text, None)]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [(text[head.end() : end], head.group("source")) for head, end in zip(heads, ends, strict=True)]
