# Every target sets up what it needs in .venv. Needs Python 3.11+ and make, nothing else.

PYTHON      ?= python3
VENV        ?= .venv
CONSTRAINTS ?= constraints.txt

BIN   := $(VENV)/bin
STAMP := $(VENV)/.stamp
TORCH := $(shell sed -n 's/^\(torch==[^ ]*\).*/\1/p' $(CONSTRAINTS))

# Extra arguments: make test PYTEST_ARGS="-k sax -x", make bench BENCH_ARGS=...
PYTEST_ARGS ?=
BENCH_ARGS  ?=
DEMO_ARGS   ?=

# Two test workers of one thread each, so that they do not fight over the cores.
WORKERS ?= 2

# fABBA has no wheels; its pure Python version needs no C compiler.
export FABBA_NO_EXTENSIONS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench format clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create the virtual environment (the other targets do it by themselves)

$(STAMP): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "timesliver needs Python 3.11 or newer: choose one with make PYTHON=python3.12 setup." >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) -m venv failed: on Debian or Ubuntu, install the package python3-venv and run make again." >&2; exit 1; }
	$(BIN)/pip install --quiet -c $(CONSTRAINTS) $(TORCH)
	$(BIN)/pip install --quiet -c $(CONSTRAINTS) -e '.[dev,abba,archive,audio,cluster,eeg,explain,pandas]'
	@touch $@

demo: $(STAMP) ## train on generated data, explain, write report.html
	$(BIN)/timesliver demo $(DEMO_ARGS)

test: $(STAMP) ## the tests and the examples in the docstrings
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

check: $(STAMP) ## lint, format, types, import rules (changes nothing)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP) ## speed and memory against the textbook formulation
	PYTHONPATH=. $(BIN)/python -m benchmarks.run $(BENCH_ARGS)

format: $(STAMP) ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove caches and builds, keep the environment
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .grimp_cache .hypothesis
	find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean ## remove the environment as well
	rm -rf $(VENV)
