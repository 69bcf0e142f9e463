# Needs Python 3.11 and make. Everything else is installed into $(VENV), once, at the versions of
# requirements.lock.

PYTHON ?= python3.11
VENV ?= .venv

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest --hypothesis-profile=ci
# Two test files at a time; benchmarks stay alone.
TOGETHER := --numprocesses 2 --dist loadfile

.PHONY: help install run test test-all bench lint types imports browser lock clean
.DEFAULT_GOAL := help

help:
	@echo "make run       procure from five owners on this machine (scikit-learn's digits)"
	@echo "make test      lint, types, import rules, and the tests that are not slow"
	@echo "make test-all  the same with the slow tests"
	@echo "make bench     benchmarks"
	@echo "make lint | types | imports   one of the checks"
	@echo "make browser   install Chromium, for the test of reports in it (Debian; without it that test skips)"
	@echo "make lock      resolve requirements.lock anew from pyproject.toml"
	@echo "make clean     remove what make made; runs/ stays"

install: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

run: $(STAMP)
	$(BIN)/hushbid run configs/digits/cluster.toml

test: lint types imports
	$(PYTEST) $(TOGETHER) -m "not slow"

test-all: lint types imports
	$(PYTEST) $(TOGETHER)

bench: $(STAMP)
	$(PYTEST) benchmarks --benchmark-enable

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

# Never a reason to stop: without a browser the tests that need one are skipped, and say so.
browser:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then as_root=; \
	elif sudo -n true 2>/dev/null; then as_root='sudo -n'; \
	else echo 'No Chromium, and no right to install it: have chromium and chromium-driver installed.'; exit 0; fi; \
	if ! command -v apt-get >/dev/null; then \
	    echo 'No Chromium, and no apt-get: install chromium and chromedriver.'; exit 0; fi; \
	$$as_root apt-get update -qq && \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    chromium chromium-driver >/dev/null || echo 'Chromium could not be installed.'

# A virtual environment of its own, so that the lock holds what the project needs and nothing else.
lock:
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip --disable-pip-version-check --quiet install --editable '.[dev]'
	build/lock/bin/python -m pip --disable-pip-version-check --quiet install \
	    "$$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')"
	{ echo '# Every package of the runtime, the dev extra and the build, with all that they need: made by `make lock`'; \
	  echo '# (a fresh virtual environment, pyproject.toml installed with its dev extra, then pip freeze).'; \
	  build/lock/bin/python -m pip freeze --all --exclude-editable --exclude pip; } > build/requirements.lock
	mv build/requirements.lock requirements.lock
	rm -rf build/lock

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
	if [ -e $(STAMP) ]; then rm -rf $(VENV); fi
