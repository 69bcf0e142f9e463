# Needs Python 3.11 and make. Everything else is installed into $(VENV), once, at the versions of
# requirements.lock.

PYTHON ?= python3.11
VENV ?= .venv

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILED := build/.tests-compiled
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest --hypothesis-profile=ci
# Five test files at a time, in the order that tests/conftest.py deals them: what waits among what computes. Two cores
# are busy then, as tests of processes and containers mostly wait. Benchmarks stay alone.
TOGETHER := --numprocesses 5 --dist loadfile --no-loadscope-reorder

# Of an environment that has it set, every process of the tests, and there are thousands, would compile all modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install run test test-all checks bench docs site figures lint types imports browser engine base-image wheelhouse lock clean
.DEFAULT_GOAL := help

help:
	@echo "make run       procure from five owners on this machine (scikit-learn's digits)"
	@echo "make test      lint, types, import rules, and the tests that are not slow"
	@echo "make test-all  the same with the slow tests"
	@echo "make bench     benchmarks"
	@echo "make docs      write the tables of the documents anew that follow from the code"
	@echo "make site      build the documents as a site, in build/site"
	@echo "make figures   count what a newcomer has to read: lines, names in two places, words of the documents"
	@echo "make lint | types | imports   one of the checks"
	@echo "make browser   install Chromium, for the test of reports in it (Debian; without it that test skips)"
	@echo "make engine    install a Docker engine and docker-compose, for the tests of containers (Debian; as above)"
	@echo "make base-image   give the engine the image that the Dockerfile builds on; no registry is needed"
	@echo "make wheelhouse   fetch what the image installs into wheelhouse/, so that it is built without a network"
	@echo "make lock      resolve requirements.lock anew from pyproject.toml"
	@echo "make clean     remove what make made; runs/ stays"

install: $(STAMP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# uv takes a seventh of pip's time. Where it reaches no index, pip may: only pip reads the machine's pip.conf.
$(STAMP): requirements.lock pyproject.toml | $(BIN)/python
	@test -d hushbid/protocol || { echo "hushbid/protocol is no folder: this copy has lost its links." \
	    "Clone it with them: git -c core.symlinks=true clone"; exit 1; }
	$(PIP) install "$$(grep '^uv==' requirements.lock)"
	$(BIN)/uv pip install --quiet --python $(BIN)/python --requirement requirements.lock || \
	    $(PIP) install --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

run: $(STAMP)
	$(BIN)/hushbid run configs/digits/cluster.toml --replay

test: $(STAMP)
	@$(call beside-types,$(PYTEST) $(TOGETHER) -m "not slow")

test-all: $(STAMP)
	@$(call beside-types,$(PYTEST) $(TOGETHER))

# The checks leave a core idle, and so do tests that wait for processes; mypy takes half a minute of one. What it finds
# is told at the end, where it is seen.
define beside-types
mkdir -p build; $(BIN)/mypy >build/types.txt 2>&1 & types=$$!; trap 'kill $$types' INT TERM; \
$(MAKE) --no-print-directory checks || { kill $$types; exit 1; }; \
echo '$(1)'; $(1); tests=$$?; \
wait $$types; types=$$?; echo '$(BIN)/mypy'; cat build/types.txt; [ $$tests -eq 0 ] && [ $$types -eq 0 ]
endef

# What is quick, so that a slip is told at once.
checks: $(STAMP)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint imports $(COMPILED)

# pytest keeps what it has compiled. In a new clone its processes would begin together, and each compile all files.
# So do Hypothesis's tables of characters. What is wrong with a file, the tests themselves say.
$(COMPILED): | $(STAMP)
	@$(PYTEST) --collect-only >/dev/null 2>&1 || true
	@$(BIN)/python -c 'from hypothesis import strategies; strategies.text().validate()'
	@mkdir -p $(@D) && touch $@

bench: $(STAMP)
	$(PYTEST) benchmarks --benchmark-enable

docs: $(STAMP)
	$(BIN)/python -m tests.docs.tables

site: $(STAMP)
	$(BIN)/mkdocs build

figures: $(STAMP)
	$(BIN)/python -m tests.unit.project.figures

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

# Never a reason to stop: without a browser or an engine the tests that need one are skipped, and say so.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	    .ci/debian-packages chromium chromium-driver || echo 'No Chromium.'

engine:
	@{ docker info || command -v dockerd; } >/dev/null 2>&1 && \
	    { docker-compose version || docker compose version; } >/dev/null 2>&1 || \
	    .ci/debian-packages docker.io docker-compose || echo 'No Docker engine.'

base-image:
	@command -v mmdebstrap >/dev/null || .ci/debian-packages mmdebstrap || true
	tests/containers/base-image

# The wheels are for the image's Python, whatever Python is here.
wheelhouse: wheelhouse/.complete

wheelhouse/.complete: requirements.lock pyproject.toml | $(BIN)/python
	rm -rf wheelhouse
	$(PIP) download --only-binary :all: --python-version 3.11 --dest wheelhouse --constraint requirements.lock \
	    $$($(BIN)/python -c 'import tomllib; toml = tomllib.load(open("pyproject.toml", "rb")); \
	        project = toml["project"]; \
	        print(*project["dependencies"], *project["optional-dependencies"]["operator"], *toml["build-system"]["requires"])')
	@touch $@

# A virtual environment of its own, so that the lock holds what the project needs and nothing else.
lock:
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip --disable-pip-version-check --quiet install --editable '.[dev]'
	build/lock/bin/python -m pip --disable-pip-version-check --quiet install \
	    "$$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')"
	{ echo '# Every package of the runtime, the dev extra and the build, with all that they need: made by `make lock`'; \
	  echo '# (a fresh virtual environment, pyproject.toml installed with its dev extra, then pip freeze).'; \
	  build/lock/bin/python -m pip freeze --exclude-editable; } > build/requirements.lock
	mv build/requirements.lock hushbid/requirements.lock
	rm -rf build/lock

clean:
	rm -rf build dist wheelhouse *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
	if [ -e $(STAMP) ]; then rm -rf $(VENV); fi
