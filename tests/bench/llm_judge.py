"""Faithfulness by our LLM judge against ragas' own, on one model: balanced accuracy, tokens, retries included.

    tools/llm-server --native &
    python -m venv /tmp/ragas && /tmp/ragas/bin/pip install ragas==0.4.3 "langchain-community<0.4"
    python -m tests.bench.llm_judge --url http://127.0.0.1:8417/v1 --model qwen2.5-coder-1.5b-instruct \\
        --ragas /tmp/ragas/bin/python --out docs/judges.md

120 labelled answers of five sets (tests/bench/llm/cases.py), half of them supported, picked by a fixed seed. The rule
is the product's default threshold: faithful if the score is at least 0.75; an answer without a score is told wrong.
Every result is written as it comes, to --work, and is not asked for again: an interrupted run goes on where it was. One
to three hours on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

from metrics.llm.chat import Chat
from metrics.llm.judging import LlmJudging, Options
from metrics.llm.prompts import load_book
from tests.bench.llm.cases import Case, compared, development
from tests.bench.llm.comparison import FAULTS, append, read, report
from tests.bench.llm.ours import default_embed, judged
from tests.services import SHARED

BEGIN, END = "<!-- table: python -m tests.bench.llm_judge -->", "<!-- end of table: llm_judge -->"
CHILD = Path(__file__).parent / "llm" / "ragas_child.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", nargs="+", help="base URL of the OpenAI API, .../v1; several servers share the cases")
    parser.add_argument("--parallel", type=int, default=2, help="answers at once on each server")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b-instruct")
    parser.add_argument("--ragas", type=Path, help="a Python that has ragas; without it results of before are used")
    parser.add_argument("--work", type=Path, default=Path(".cache/llm-judge"), help="where results are kept")
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--part", choices=("ragas", "ours", "both"), default="both")
    parser.add_argument("--cases", choices=("comparison", "development"), default="comparison")
    parser.add_argument("--splitting", choices=("rules", "llm"), default="rules")
    parser.add_argument("--prompts", type=Path, help="a folder of prompts in place of those that are shipped")
    parser.add_argument("--out", type=Path, help="a page whose table is replaced; without it the table is printed")
    chosen = parser.parse_args()
    if chosen.url is None:
        print("llm_judge: left out, no --url of a chat endpoint (tools/llm-server starts one)")
        return
    if not (chosen.data / "labelled").is_dir():
        parser.error(f"{chosen.data} has no folder labelled: give --data the folder of the labelled sets")
    chosen.work.mkdir(parents=True, exist_ok=True)
    picked = compared(chosen.data) if chosen.cases == "comparison" else development(chosen.data)
    theirs = chosen.work / f"ragas-{chosen.cases}.jsonl"
    if chosen.part != "ours":
        run_ragas(chosen, picked, theirs)
    if chosen.part == "ragas":
        return
    prompts = hashlib.sha256(load_book(chosen.prompts).version.encode()).hexdigest()[:8]
    mine = chosen.work / f"ours-{chosen.cases}-{chosen.splitting}-{prompts}.jsonl"
    run_ours(chosen, picked, mine)
    print(f"results: {mine}, {theirs}", flush=True)
    publish(picked, mine, theirs, chosen.out)


def run_ragas(chosen: argparse.Namespace, picked: list[Case], out: Path) -> None:
    """ragas in its own environment; says so where there is none."""
    if chosen.ragas is None:
        print("llm_judge: ragas is not run, no --ragas of a Python that has it")
        return
    listed = chosen.work / f"{chosen.cases}.jsonl"
    listed.write_text("".join(json.dumps(asdict(case), ensure_ascii=False) + "\n" for case in picked), "utf-8")
    command = [str(chosen.ragas), str(CHILD), "--cases", str(listed), "--out", str(out)]
    command += ["--parallel", str(chosen.parallel)]
    environment = {**os.environ, "RAGAS_DO_NOT_TRACK": "true", "PYTHONPATH": ""}
    subprocess.run([*command, "--model", chosen.model, "--url", *chosen.url], check=True, env=environment)


def run_ours(chosen: argparse.Namespace, picked: list[Case], out: Path) -> None:
    """Cases that `out` does not have yet; what was said of each statement goes to a file beside it."""
    done = read(out)
    left = [case for case in picked if case.id not in done]
    embed, identity = default_embed()
    options = Options(metrics=("faithfulness",), splitting=chosen.splitting)
    book = load_book(chosen.prompts)

    def judge_on(chat: Chat) -> LlmJudging:
        return LlmJudging(chat, embed, book, embedder_identity=identity, options=options)

    for case, result, lines in judged(left, chosen.url, chosen.model, chosen.parallel, judge_on):
        if result.unscored in FAULTS:
            print(f"llm_judge: {case.id} is left for the next run: {result.unscored}", flush=True)
            continue
        append(out, result)
        said = "".join(f"    {line}\n" for line in lines)
        with out.with_suffix(".txt").open("a", encoding="utf-8") as log:
            log.write(f"{case.id} label {case.label} score {result.score} {result.unscored or ''}\n{said}")


def publish(picked: list[Case], mine: Path, theirs: Path, page: Path | None) -> None:
    ours, ragas = read(mine), read(theirs)
    both = [case for case in picked if case.id in ours and case.id in ragas]
    if len(both) < len(picked):
        print(f"llm_judge: {len(picked) - len(both)} of {len(picked)} cases lack a result of one side")
    if not both:
        return
    table = report(both, ours, ragas)
    if page is None:
        print(table)
        return
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text:
        raise SystemExit(f"{page} has no line {BEGIN}")
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
