# On a fresh machine with Python 3.11 or newer and git: `make demo` and `make test` do all set-up themselves.
# ARGS passes options on: make demo ARGS="--for 90s", make test ARGS="-k sampling".
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
BIN := .venv/bin
ARGS ?=
# Most tests wait for a service, so two files at once take little more than half the time. One: ARGS="-n 0".
TWO := -n 2 --dist loadfile

.PHONY: help demo test test-full test-llm check bench soak setup lock

help: ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1	\2/' | expand -t 18

demo: ## the main job on embedded services, with an incident
	@tools/setup run
	@$(BIN)/groundwatch demo $(ARGS)

test: ## the tests that take less than ten minutes together
	@tools/setup dev
	@$(BIN)/python -m pytest $(TWO) -m "not full and not soak and not llm" $(ARGS)

test-full: ## the slow tests: faults, rebalances, kills, memory, alerts end to end, the browser
	@tools/setup dev
	@$(BIN)/python -m pytest $(TWO) -m "full and not soak and not llm" $(ARGS)

test-llm: ## tests against a real model, served at GROUNDWATCH_TEST_LLM=http://HOST:PORT/v1
	@tools/setup dev
	@$(BIN)/python -m pytest -m llm --timeout 3000 $(ARGS)

check: ## linter, formatter, types
	@tools/setup dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: ## the measurements of docs/performance.md (half an hour or more)
	@tools/setup dev
	@for name in $$(cd tests/bench && grep -l __main__ *.py); do \
		echo "== tests/bench/$$name"; $(BIN)/python -m tests.bench.$${name%.py} $(ARGS); \
	done

soak: ## the tests that take hours
	@tools/setup dev
	@$(BIN)/python -m pytest -m soak --timeout 0 $(ARGS)

setup: ## only make .venv, for work on the code
	@tools/setup dev

lock: ## write the versions in .venv to requirements.lock
	@sed -n '/^#/p' requirements.lock > .venv/lock
	@$(BIN)/python -m pip freeze --exclude-editable | grep -viE '^(torch|triton|nvidia-[a-z0-9-]*|pip|setuptools)==' >> .venv/lock
	@mv .venv/lock requirements.lock
