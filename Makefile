# One command each. Everything they need goes into git-ignored folders (.venv, .cache, build) and is reused next time.
#   make demo | demo-orders | test | lint | bench | docs | help        PYTHON=python3.12 chooses the interpreter, ARGS=… is passed on

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo demo-orders test lint format bench docs clean

# The caller's own settings must not reach in: a stray PYTHONPATH is a second copy, a stray EVENTLOG_URL somebody's log.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS PYTEST_ADDOPTS MYPYPATH EVENTLOG_URL EVENTLOG_APP
export PYTHONNOUSERSITE := 1
export PYTHONUTF8 := 1

BIN := .venv/bin
ARGS ?=

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

demo: ## an agent is killed after it paid, comes back, and does not pay twice
	@.ci/environment .venv
	@$(BIN)/eventlog demo $(ARGS)

demo-orders: ## an order's whole life in linear code, killed at every bad moment
	@.ci/environment .venv
	@$(BIN)/python -m examples.orders.demo $(ARGS)

test: ## the whole suite, on every core
	@.ci/environment .venv test
	@.ci/services
	@echo "· running the tests"
	@.ci/in-memory $(BIN)/python -m pytest -n auto --dist loadfile --durations 10 $(ARGS)

lint: ## ruff, format, import arrows, types
	@.ci/environment .venv test
	@found=0; \
	echo "· ruff check"; $(BIN)/ruff check . || found=1; \
	echo "· ruff format --check"; $(BIN)/ruff format --check . || found=1; \
	echo "· import arrows"; $(BIN)/lint-imports || found=1; \
	echo "· types"; .ci/types || found=1; \
	exit $$found

format: ## put layout, import order and __all__ right
	@.ci/environment .venv test
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: ## the table of speeds, with bounds and rivals
	@.ci/environment .cache/bench-venv bench
	@echo "· measuring" && .cache/bench-venv/bin/python -m benchmarks $(ARGS)

docs: ## run every example in the docs, then build the site into build/docs
	@.ci/environment .venv test
	@.ci/environment .venv docs
	@echo "· running the examples of README.md and docs/" && $(BIN)/python -m pytest -q tests/house/test_docs.py
	@echo "· building build/docs" && $(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees docs build/docs
	@echo "open build/docs/index.html"

clean: ## remove everything the commands have made
	rm -rf .venv .cache build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks
