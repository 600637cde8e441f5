# Two commands do everything on a fresh machine with Python 3.11+: `make report` and `make test`.
PYTHON ?= python3
OLDEST_PYTHON ?= python3.11
NEWEST_PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 $(PYTHON); do $$p -c '' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CONSTRAINTS := constraints.txt
NEWS := -W default::DeprecationWarning -W default::PendingDeprecationWarning -W default::FutureWarning
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1  # each of two test processes: small matrices, no contention

.PHONY: help quick report test lint machines docs docs-check bench hunt fuzz oldest newest sdist wheel constraints clean

help:
	@echo "make report       run the main job on embedded data; summary here, HTML in report-out/"
	@echo "make quick        lint and the tests of what changed since a commit (SINCE=HEAD), in under a minute"
	@echo "make test         lint, types, layers, doctests and tests; then \`make machines\`"
	@echo "make machines     a part of the tests again, on another processor and with accesses to arrays checked"
	@echo "make docs         the site, into docs/_build/html"
	@echo "make docs-check   the site, and its pages in a Chromium of this machine"
	@echo "make bench        timings against peers, as ratios; what calls cost; goes on where it was stopped"
	@echo "make hunt         the long searches; then \`make oldest\`, \`make newest\` and \`make sdist\`"
	@echo "make fuzz         damaged files, odd calls, kills: hours; what goes wrong is kept in fuzz-out/"
	@echo "make oldest       the tests with the oldest dependencies that pyproject.toml allows, in .venv-oldest"
	@echo "make newest       the tests with the newest dependencies and Python, in .venv-newest"
	@echo "make sdist        the tests of the source distribution, as it is unpacked"
	@echo "make wheel        wheel and source distribution in dist/; the wheel in an empty environment, timed"
	@echo "make constraints  the newest dependencies become the tested ones, in constraints.txt"

PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
INSTALL = $(BIN)/python $(PIP_INSTALL) -c $(CONSTRAINTS) -e $(1) || { \
	$(BIN)/python -m pip install --disable-pip-version-check --dry-run -c $(CONSTRAINTS) -e $(1) 2>&1 | tail -n 12; \
	echo "$(CONSTRAINTS) could not be installed; the lines above say which version failed. If this Python or platform" \
	"has no such version: 'make test CONSTRAINTS=/dev/null' takes the newest, untested." >&2; exit 1; }

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "forgetting needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --upgrade 'pip>=25.1'  # it knows dependency groups

$(VENV)/ready: pyproject.toml constraints.txt | $(BIN)/python
	@$(call INSTALL,'.[data]')
	touch $@

$(VENV)/ready-dev: pyproject.toml constraints.txt | $(BIN)/python
	@$(call INSTALL,'.[all]' --group dev)
	touch $@ $(VENV)/ready

report: $(VENV)/ready
	$(BIN)/forgetting report --out report-out --force

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: $(VENV)/ready-dev
	@$(BIN)/python tools/quick.py $(or $(SINCE),HEAD)

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal  # the tests of a file stay together, with what they share
	$(BIN)/python tests/machines.py

machines: $(VENV)/ready-dev
	$(BIN)/python tests/machines.py

bench: $(VENV)/ready-dev
	$(BIN)/python -m benchmarks --page docs/benchmarks.md
	$(BIN)/python -m benchmarks.costs --page docs/how_far.md

docs: $(VENV)/ready
	@$(call INSTALL,'.[data]' --group docs)
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

docs-check: $(VENV)/ready-dev docs
	FORGETTING_DOCS=1 $(BIN)/python -m pytest tests/browser/test_docs_pages.py

hunt: $(VENV)/ready-dev
	$(BIN)/python -m tools.survey --budget 1000 --minutes 30 --force --out docs/claims.md \
	  --save docs/counterexamples
	$(BIN)/python -m tools.hunt_rates
	$(BIN)/python -m tools.ratios --budget 1000 --page docs/claims.md
	FORGETTING_LONG=1 $(ONE_THREAD) $(BIN)/python -m pytest -n 2 -m "slow or not slow"
	$(BIN)/python tests/machines.py --whole
	$(MAKE) oldest newest sdist

fuzz: $(VENV)/ready-dev
	$(BIN)/python tests/faults/files.py --cases 100000 --seed 1 --processes 2 --folder fuzz-out/files
	$(BIN)/python tests/faults/api_calls.py --cases 100000 --seed 1 --processes 2 --folder fuzz-out/calls
	$(BIN)/python tests/faults/command_lines.py --cases 2500 --seed 1
	$(BIN)/python tests/faults/kills.py --kills 200 --signals 100 --hunts 3

constraints:
	$(OLDEST_PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python $(PIP_INSTALL) --upgrade pip
	.venv-newest/bin/python $(PIP_INSTALL) -e '.[all]' --group dev --group docs
	{ echo '# The versions that were tested together. Made by: make constraints'; \
	  .venv-newest/bin/python -m pip freeze --exclude-editable; } > constraints.new
	mv constraints.new constraints.txt

oldest:
	$(OLDEST_PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python $(PIP_INSTALL) --upgrade pip
	.venv-oldest/bin/python tests/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python $(PIP_INSTALL) -c .venv-oldest/constraints.txt -e '.[all]' --group dev
	$(ONE_THREAD) .venv-oldest/bin/python -m pytest -n 2

newest:  # deprecations of what this package calls are news here, not failures
	$(NEWEST_PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python $(PIP_INSTALL) --upgrade pip
	.venv-newest/bin/python $(PIP_INSTALL) -e '.[all]' --group dev
	$(ONE_THREAD) .venv-newest/bin/python -m pytest -n 2 $(NEWS)

sdist:
	rm -rf build/sdist
	$(PYTHON) -m venv --clear .venv-sdist
	.venv-sdist/bin/python $(PIP_INSTALL) --upgrade pip hatchling
	.venv-sdist/bin/python -m hatchling build -t sdist -d build/sdist
	tar -xzf build/sdist/*.tar.gz -C build/sdist --strip-components 1
	.venv-sdist/bin/python $(PIP_INSTALL) -c $(CONSTRAINTS) 'build/sdist[all]' --group build/sdist/pyproject.toml:dev
	cd build/sdist && $(ONE_THREAD) ../../.venv-sdist/bin/python -m pytest -n 2 tests

wheel:  # what a user gets: the wheel alone, in an empty environment, up to the first results
	rm -rf dist
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/$(notdir $(BIN))/python $(PIP_INSTALL) hatchling
	.venv-wheel/$(notdir $(BIN))/python -m hatchling build -d dist
	.venv-wheel/$(notdir $(BIN))/python tests/first_hour/run_all.py dist/*.whl

clean:
	rm -rf .venv* report-out fuzz-out build dist docs/_build docs/auto_gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
