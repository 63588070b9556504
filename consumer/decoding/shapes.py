"""The one normaliser for contexts: every shape that the field logs, to chunks.

A text, a list, a list in a list, a JSON list inside a text, what Python printed, objects whose passage is under one of
many names or one level down, a passage in two fields (question and answer of an FAQ), parallel lists (Chroma), passages
under keys of their own (`{"doc-1": "...", "doc-2": "..."}`), pairs of document and score.
"""

from __future__ import annotations

from typing import Any

from consumer.decoding.opened import opened, unprinted
from consumer.decoding.prompts import decorated
from consumer.decoding.reasons import DecodeError, Refusal, Repair
from consumer.decoding.scalars import read_id, read_number
from metrics.event import Chunk

MAX_NESTING = 12

TEXT_KEYS = ("page_content", "pageContent", "content_with_weight", "text", "content", "chunk_content", "chunk_text",
             "chunkText", "chunkContent", "passage", "passage_text", "paragraph", "page_result", "contents", "blurb",
             "body", "snippet", "excerpt", "DocumentExcerpt", "Content", "Text", "page_snippet", "highlight",
             "document_content", "doc_content", "context", "fragment", "segment_content", "sentence", "sentences",
             "compiled", "summary", "abstract", "extract", "value", "data", "string", "description", "stringValue",
             "plainText", "raw_content", "matched_text", "quote", "cited_text", "document.content", "内容", "正文",
             "文本", "段落", "片段", "原文", "文档内容", "段落内容", "片段内容")  # fmt: skip
"""Names of the passage in an object, the surest first."""
_INSIDE = ("node", "document", "doc", "chunk", "_source", "payload", "properties", "entity", "fields", "chunkInfo",
           "retrievedContext", "unstructuredDocumentInfo", "segment", "metadata", "record", "item", "passage", "text",
           "content", "text_resource", "derivedStructData", "structData", "kwargs", "source", "web", "object",
           "passage_info", "attributes", "output", "resource", "paragraph", "Document", "location", "json",
           "retrievedReference", "文档", "段落", "片段", "内容", "元数据")  # fmt: skip
"""Objects one level down in which the passage may be."""
_LISTS = ("chunks", "documents", "contexts", "passages", "results", "retrievalResults", "retrievedReferences", "hits",
          "nodes", "items", "source_nodes", "sources", "matches", "points", "retrieved_contexts", "citations", "docs",
          "source_documents", "sourceDocuments", "references", "data", "records", "chunkContents", "context",
          "search_results", "value", "objects", "list", "quoteList", "content", "result", "segments", "response",
          "output", "all_retrieved_documents", "extractive_segments", "extractive_answers", "snippets",
          "paragraphs", "entries", "blocks", "上下文", "参考资料", "检索结果", "文档", "知识", "引用", "段落",
          "片段", "内容")  # fmt: skip
"""Names of a list of passages in an object around it."""
_TEXT_NAMES = frozenset(TEXT_KEYS)
_AROUND_NAMES = frozenset((*_INSIDE, *_LISTS))
_PAIRS = (
    ("q", "a"),
    ("question", "answer"),
    ("Question", "Answer"),
    ("faq_question", "faq_answer"),
    ("title", "answer"),
    ("问题", "答案"),
    ("问题", "回答"),
)
_IDS = ("id", "chunk_id", "chunkId", "segment_id", "_id", "id_", "node_id", "doc_id", "docid", "passage_id",
        "document_id", "documentId", "pid", "uuid", "key", "reference_id", "file_id", "编号", "文档编号")  # fmt: skip
_SCORES = ("score", "similarity", "relevance_score", "relevanceScore", "_score", "@search.score", "rerank_score",
           "@search.reranker_score", "relevance", "retrieval_score", "similarity_score", "confidence",
           "得分", "分数", "相似度", "相关度")  # fmt: skip
_SOURCES = ("source", "document_name", "documentName", "docnm_kwd", "file_name", "fileName", "filename", "sourceName",
            "uri", "url", "link", "sourceUri", "title", "name", "doc_name", "file_path", "filepath", "path",
            "doc_uri", "document_title", "page_url", "source_name", "来源", "文件名", "文档名", "标题")  # fmt: skip
_METADATA = ("metadata", "meta", "meta_data", "extra_info", "document_metadata", "docMetadata", "_source", "payload",
             "retrievedContext", "元数据")  # fmt: skip
_ABOUT_NAMES = frozenset((*_IDS, *_SCORES, *_SOURCES, *_METADATA))
"""Names of what describes a passage: an object that has one of them is a passage, not a map of passages."""


def chunks_of(value: Any, repairs: list[str], *, max_chunks: int) -> list[Chunk]:
    """The passages in `value`, in the order in which they stand.

    Null and blank entries are left out and noted in `repairs`.

    Raises:
        DecodeError: bad_context_shape (a number, an object without a passage, ...), too_many_chunks.
    """
    collected: list[Chunk] = []
    _collect(value, collected, repairs, max_chunks, 0)
    return collected


def _refused(found: str) -> DecodeError:
    return DecodeError(
        Refusal.BAD_CONTEXT_SHAPE, f"{found}; a list of texts or of objects with a text is expected (docs/events.md)"
    )


def _collect(value: Any, out: list[Chunk], repairs: list[str], limit: int, depth: int) -> None:
    if depth > MAX_NESTING:
        raise _refused("contexts are nested too deep")
    if value is None:
        repairs.append(Repair.NULL_CHUNK)
    elif isinstance(value, str):
        inner = unprinted(value, repairs)
        if isinstance(inner, (list, dict)) and holds_passages(inner):
            _collect(inner, out, repairs, limit, depth + 1)
        else:
            for text, source in decorated(value):
                _add(text, {"source": source} if source else {}, out, repairs, limit)
    elif isinstance(value, list):
        _collect_list(value, out, repairs, limit, depth)
    elif isinstance(value, dict):
        _collect_object(value, out, repairs, limit, depth)
    else:
        raise _refused(f"a context is {'a boolean' if isinstance(value, bool) else 'a number'}")


def _collect_list(value: list[Any], out: list[Chunk], repairs: list[str], limit: int, depth: int) -> None:
    if len(value) > limit * 4:
        raise _too_many(len(value), limit)
    if len(value) == 2 and depth > 0:
        left, right = value if _is_number(value[1]) else reversed(value)
        if _is_number(right) and isinstance(left, (dict, str)):
            # A pair of document and score, as a similarity search returns it.
            scored: list[Chunk] = []
            _collect(left, scored, repairs, limit, depth + 1)
            score = read_number(right, repairs)
            out.extend(Chunk(c.text, c.id, score if c.score is None else c.score, c.source) for c in scored)
            return
        left, right = value
        if isinstance(left, str) and isinstance(right, list) and right and all(isinstance(s, str) for s in right):
            # A title and its sentences.
            _add(_sentences(right), {"title": left}, out, repairs, limit)
            return
    for item in value:
        if isinstance(item, dict):
            if not _collect_known(item, out, repairs, limit, depth + 1):
                _collect_unnamed(item, out, repairs, limit, depth + 1)
        else:
            _collect(item, out, repairs, limit, depth + 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _sentences(parts: list[str]) -> str:
    return "".join(parts) if any(part[:1].isspace() for part in parts[1:]) else " ".join(parts)


def _collect_object(value: dict[str, Any], out: list[Chunk], repairs: list[str], limit: int, depth: int) -> None:
    if _collect_known(value, out, repairs, limit, depth):
        return
    if value.keys() & _ABOUT_NAMES:
        _collect_unnamed(value, out, repairs, limit, depth)
    else:
        _collect_dynamic(value, out, repairs, limit, depth)


def _collect_known(value: dict[str, Any], out: list[Chunk], repairs: list[str], limit: int, depth: int) -> bool:
    """Whether the passages stand under a name that is known; then they are collected."""
    if depth > MAX_NESTING:
        raise _refused("contexts are nested too deep")
    for first, second in _PAIRS:
        if isinstance(value.get(first), str) and isinstance(value.get(second), str):
            _add("\n".join(p for p in (value[first].strip(), value[second].strip()) if p), value, out, repairs, limit)
            return True
    for key in TEXT_KEYS:
        inner = value.get(key)
        if isinstance(inner, str):
            _collect_text(inner, value, out, repairs, limit, depth)
            return True
        if isinstance(inner, list) and inner and all(isinstance(item, str) or item is None for item in inner):
            _collect_parallel(key, inner, value, out, repairs, limit)
            return True
    for key in ("documents", "document", "texts", "docs"):
        inner = _flat(value.get(key))
        if inner and all(isinstance(item, str) for item in inner) and (len(value) > 1 or key in ("documents", "texts")):
            _collect_parallel(key, inner, value, out, repairs, limit)
            return True
    for key in _INSIDE:
        inner = opened(value.get(key))
        if isinstance(inner, dict) and holds_passages(inner):
            _collect_inside(inner, value, out, repairs, limit, depth)
            return True
    for key in _LISTS:
        inner = opened(value.get(key))
        if isinstance(inner, (list, dict)) and (not inner or holds_passages(inner)):
            if inner:
                _collect_inside(inner, value, out, repairs, limit, depth)
            return True
    if any(key in value and value[key] is None for key in TEXT_KEYS):
        repairs.append(Repair.NULL_CHUNK)
        return True
    return not value


def _collect_text(
    text: str, value: dict[str, Any], out: list[Chunk], repairs: list[str], limit: int, depth: int
) -> None:
    """A text is verbatim, unless it is a whole document logged inside a text part (`{"type": "text", "text": ...}`)."""
    inner = opened(text) if value.get("type") in ("text", "output_text", "tool_result") else text
    if isinstance(inner, (dict, list)) and holds_passages(inner):
        _collect_inside(inner, value, out, repairs, limit, depth)
    else:
        _add(text, value, out, repairs, limit)


def _collect_inside(
    inner: Any, value: dict[str, Any], out: list[Chunk], repairs: list[str], limit: int, depth: int
) -> None:
    """The passages of an inner object; what it lacks (id, score, source) is taken from the object around it."""
    found: list[Chunk] = []
    _collect(inner, found, repairs, limit - len(out), depth + 1)
    if isinstance(inner, dict) and len(found) == 1:
        around = _described(found[0].text, value, repairs)
        chunk = found[0]
        found = [
            Chunk(chunk.text, chunk.id or around.id, _or(chunk.score, around.score), chunk.source or around.source)
        ]
    out.extend(found)


def _or(first: float | None, second: float | None) -> float | None:
    return second if first is None else first


def _collect_parallel(
    key: str, texts: list[Any], value: dict[str, Any], out: list[Chunk], repairs: list[str], limit: int
) -> None:
    """Lists side by side: texts, ids, metadata, distances; or one passage as a list of its sentences."""
    if key in ("sentences", "contents") and len(value) > 1 and not any(_side(value, k, texts) for k in _SIDES):
        _add(_sentences([text for text in texts if text]), value, out, repairs, limit)
        return
    ids, metas, scores, sources = (_side(value, names, texts) for names in _SIDES)
    for at, text in enumerate(texts):
        about: dict[str, Any] = {"source": value["source"]} if isinstance(value.get("source"), str) else {}
        if metas and isinstance(metas[at], dict):
            about["metadata"] = metas[at]
        if ids:
            about["id"] = ids[at]
        if scores:
            about["score"] = scores[at]
        if sources:
            about["source"] = sources[at]
        _add(text, about, out, repairs, limit)


_SIDES = (
    ("ids", "id", "doc_ids", "document_ids", "chunk_ids"),
    ("metadatas", "metadata", "metas"),
    ("scores", "similarities", "relevance_scores"),
    ("sources", "source", "urls", "url", "titles", "title"),
)


def _side(value: dict[str, Any], names: tuple[str, ...], texts: list[Any]) -> list[Any] | None:
    for name in names:
        side = _flat(value.get(name))
        if side and len(side) == len(texts):
            return side
    return None


def _flat(value: Any) -> list[Any] | None:
    if not isinstance(value, list):
        return None
    if value and all(isinstance(item, list) for item in value):
        return [inner for item in value for inner in item]
    return value


def _collect_unnamed(value: dict[str, Any], out: list[Chunk], repairs: list[str], limit: int, depth: int) -> None:
    """One passage whose name is not known: objects with a passage in them, else the one text that may be it. Of
    several texts, which is the passage and which its heading is not guessed."""
    values = [opened(inner) for inner in value.values()]
    inside = [inner for inner in values if _holds_objects(inner) and holds_passages(inner)]
    prose = {
        key: text for key, text in value.items() if key not in _ABOUT_NAMES and isinstance(text, str) and is_prose(text)
    }
    sentences = [inner for inner in values if isinstance(inner, list) and inner and holds_passages(inner)]
    if inside or (not prose and len(sentences) == 1):
        for inner in inside or sentences:
            _collect_inside(inner, value, out, repairs, limit, depth)
    elif len(prose) == 1:
        _add(next(iter(prose.values())), value, out, repairs, limit)
    else:
        names = ", ".join(sorted(str(key)[:40] for key in prose or value)[:8])
        raise _refused(
            f"which of the texts {names} is the passage is not known"
            if prose
            else f"no passage in an object with the keys {names}"
        )


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))


def _collect_dynamic(value: dict[str, Any], out: list[Chunk], repairs: list[str], limit: int, depth: int) -> None:
    """Passages under keys of their own: the key is the passage's id."""
    before = len(out)
    words = 0
    if len(value) > limit * 4:
        raise _too_many(len(value), limit)
    for key, inner in value.items():
        if isinstance(inner, str) and not is_prose(inner) and not isinstance(opened(inner), (dict, list)):
            words += bool(inner.strip())
            continue
        if isinstance(inner, (str, dict, list)) and (isinstance(inner, str) or holds_passages(inner)):
            found: list[Chunk] = []
            _collect(inner, found, repairs, limit - len(out), depth + 1)
            out.extend(Chunk(c.text, c.id or (key or None), c.score, c.source) for c in found)
    if len(out) == before and value:
        names = ", ".join(sorted(str(key)[:40] for key in value)[:8])
        raise _refused(f"no passage in an object with the keys {names}")
    repairs.extend([Repair.WORD_LEFT_OUT] * words)


def is_prose(text: str) -> bool:
    """Whether a text under an unknown key may be a passage: it has spaces between words, or characters of a script
    without spaces; an address or an id is none."""
    text = text.strip()
    if text.startswith(("http://", "https://", "s3://", "gs://", "/")) and " " not in text:
        return False
    return " " in text or any(ord(character) > 0x2E7F for character in text[:200])


def holds_passages(value: Any, depth: int = 0) -> bool:
    """Whether a list or object reads as passages; a list of bare numbers, say, does not."""
    if depth > 6:
        return False
    if isinstance(value, list):
        if all(item is None or isinstance(item, str) for item in value):
            return True
        if len(value) == 2 and any(map(_is_number, value)):
            # Text and score: a row of a table has words, too, but no sentences.
            return any(is_prose(part) if isinstance(part, str) else holds_passages(part, depth + 1) for part in value)
        return any(isinstance(item, (dict, list)) and holds_passages(item, depth + 1) for item in value[:20])
    if not isinstance(value, dict):
        return False
    if any(isinstance(value.get(first), str) and isinstance(value.get(second), str) for first, second in _PAIRS):
        return True
    for key in value.keys() & _TEXT_NAMES:
        inner = value[key]
        if isinstance(inner, str) or (isinstance(inner, list) and inner and isinstance(inner[0], str)):
            return True
    for key in value.keys() & _AROUND_NAMES:
        inner = opened(value[key])
        if isinstance(inner, (dict, list)) and inner and holds_passages(inner, depth + 1):
            return True
    inside = [v for v in value.values() if isinstance(v, (dict, list)) and v]
    return bool(inside) and len(inside) == len(value) and all(holds_passages(v, depth + 1) for v in inside[:20])


def _add(text: Any, about: dict[str, Any], out: list[Chunk], repairs: list[str], limit: int) -> None:
    if text is None:
        repairs.append(Repair.NULL_CHUNK)
    elif not text.strip():
        repairs.append(Repair.BLANK_CHUNK)
    else:
        if len(out) >= limit:
            raise _too_many(len(out) + 1, limit)
        out.append(_described(text.strip(), about, repairs))


def _too_many(found: int, limit: int) -> DecodeError:
    return DecodeError(Refusal.TOO_MANY_CHUNKS, f"{found} contexts or more; decode.max_chunks allows {limit}")


def _described(text: str, about: dict[str, Any], repairs: list[str]) -> Chunk:
    if not about:
        return Chunk(text)
    around = [about]
    for key in _METADATA:
        inner = opened(about.get(key))
        if isinstance(inner, dict):
            around.append(inner)
    return Chunk(text, _first_id(around), _first_score(around, repairs), _first_source(around, text))


def _first_id(around: list[dict[str, Any]]) -> str | None:
    for described in around:
        for key in _IDS:
            value = described.get(key)
            if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
                # A retriever's ids begin at 0: here, unlike an event's id, 0 is an id.
                return "0" if value == 0 else read_id(value, [])
    return None


def _first_score(around: list[dict[str, Any]], repairs: list[str]) -> float | None:
    for described in around:
        for key in _SCORES:
            if described.get(key) is not None:
                return read_number(described[key], repairs)
    return None


def _first_source(around: list[dict[str, Any]], text: str) -> str | None:
    for described in around:
        for key in _SOURCES:
            value = described.get(key)
            if isinstance(value, str) and value.strip() and value.strip() != text and len(value) <= 2000:
                return value.strip()
    return None
