"""What `groundwatch doctor` says of the judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx

from consumer.doctor_finding import ANSWER_SECONDS, Check
from consumer.embedders import NoEmbedder
from consumer.judge_settings import Judge
from consumer.judged_metrics import beyond
from consumer.local_models import models_dir, prepare_torch
from consumer.logs import one_line, without_credentials
from consumer.settings import Embedding, Settings
from metrics.model_files import Manifest, ModelError
from metrics.model_store import prepared
from metrics.packaged_model import NAME as BASE
from metrics.verifier.shipped_files import checked_files


def check_judge(settings: Settings) -> Iterator[Check]:
    judge = settings.judge
    fault = beyond(settings.scoring.metrics, judge)
    if fault:
        found, _, advice = fault.partition("; ")
        yield Check("judge", "fail", f"{found}, but judge.kind is {judge.kind}", advice)
        return
    if judge.kind == "local":
        yield _local(judge, settings.embedding)
        return
    if judge.kind != "llm":
        yield Check("judge", "ok", f"{judge.kind}, in the worker itself")
        return
    # Late: whoever has no such judge does not wait for what it is made of.
    from consumer.judging.building import api_key

    try:
        key = api_key(judge)
    except ModelError as error:
        yield Check("judge", "fail", one_line(str(error)), "check judge.api_key_file")
        return
    yield _judge_endpoint(judge.url, judge.model, key)


def _local(judge: Judge, embedding: Embedding) -> Check:
    """Checksum and known pairs, in float32: the precision that the scorer takes is proved at its start. Nothing is
    prepared for it."""
    try:
        prepare_torch(embedding.threads)
        # Late: whoever has another judge does not wait for torch.
        from consumer.local_judges import build_local

        if not judge.local_model:
            base = checked_files().base
            if not _prepared(models_dir(embedding), base):
                found = f"{BASE} {base}, on which the verifier stands, is not prepared in {models_dir(embedding)}"
                return Check("judge", "fail", one_line(found), "groundwatch models prepare verifier")
        exact = embedding.model_copy(update={"precision": "fp32"})
        built = build_local(judge, exact, NoEmbedder(), None, lambda: None)
    except ModelError as error:
        found, _, advice = str(error).partition("; ")
        return Check("judge", "fail", one_line(found), one_line(advice))
    return Check("judge", "ok", f"local, in the worker itself: {built.network}, checksum and known pairs right")


def _prepared(store: Path, base: str) -> bool:
    manifests = [manifest for _, manifest in prepared(store)]
    return any(isinstance(m, Manifest) and m.name == BASE and m.revision.startswith(base) for m in manifests)


def _judge_endpoint(url: str, model: str, key: str) -> Check:
    """Asks for the list of models, which costs nothing; `judge-check` asks for verdicts."""
    shown = without_credentials(url)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(f"{url}/models", headers=headers, timeout=ANSWER_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Check("judge", "fail", one_line(f"{shown} does not answer: {error}"), "start it, or check judge.url")
    status = answer.status_code
    if status in (401, 403):
        return Check("judge", "fail", f"{shown} answers {status}", "check GROUNDWATCH__JUDGE__API_KEY or api_key_file")
    if status != 200:
        return Check(
            "judge", "warn", f"{shown}/models answers {status}", "see whether it judges: groundwatch judge-check"
        )
    known = _model_names(answer)
    if known is None:
        return Check(
            "judge", "warn", f"{shown}/models lists no models: is this an OpenAI-compatible endpoint?",
            "check judge.url (it often ends with /v1), then: groundwatch judge-check",
        )  # fmt: skip
    if model not in known:
        listed = one_line(", ".join(known[:5])) or "nothing"
        return Check("judge", "warn", f"{shown} does not list {model}, but {listed}", "check judge.model")
    return Check("judge", "ok", f"{shown} answers and has {model}; groundwatch judge-check tries it")


def _model_names(answer: httpx.Response) -> list[str] | None:
    """What the endpoint lists; None where that is no list of models."""
    try:
        return [str(entry["id"]) for entry in answer.json()["data"]]
    except (ValueError, LookupError, TypeError):
        return None
