"""Parts of `tests.bench.llm_judge`: the cases, ragas in a process of its own, our judge, the comparison."""
