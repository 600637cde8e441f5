# Two commands do everything on a fresh machine with Python 3.11+: `make report` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1  # each of two test processes: small matrices, no contention

.PHONY: help report test lint docs bench hunt clean

help:
	@echo "make report   run the main job on embedded data; summary here, HTML in report-out/"
	@echo "make test     lint, types, layers, doctests and tests"
	@echo "make docs     the site, into docs/_build/html"
	@echo "make bench    timings against peers, as ratios"
	@echo "make hunt     the long searches"

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -e

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "forgetting needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/ready: pyproject.toml | $(BIN)/python
	$(INSTALL) .
	touch $@

$(VENV)/ready-dev: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[dev]'
	touch $@ $(VENV)/ready

report: $(VENV)/ready
	$(BIN)/forgetting report --out report-out --force

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

bench: $(VENV)/ready-dev
	$(BIN)/python -m benchmarks --page docs/benchmarks.md

docs: $(VENV)/ready
	$(INSTALL) '.[docs]'
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

hunt: $(VENV)/ready-dev
	$(BIN)/python -m forgetting.claims --budget 1000 --minutes 15 --out docs/claims.md --save docs/counterexamples
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -m slow

clean:
	rm -rf $(VENV) report-out build dist docs/_build docs/auto_gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
