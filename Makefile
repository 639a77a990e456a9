# Needs Python 3.11 or later and make; everything else goes into .venv, at the versions of
# requirements/constraints.txt. The stamps in .venv make repeated runs quick.

PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
CONSTRAINTS := requirements/constraints.txt
PIP         := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
PIP_INSTALL := $(PIP) --build-constraint $(CONSTRAINTS)

QUICK_EXTRAS := cli,report,display,arrow,onnx
HEAVY_EXTRAS := torch,spark,ray

# One file stays on one worker, so that Spark and Ray start once; BLAS threads would fight over the cores.
PYTEST      := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest
PYTEST_ARGS ?= -n auto --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-oldest mutants check format bench benchmark docs samples reproduce constraints release-check clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/.stamp-demo  ## the whole story on predictions that ship inside the package
	$(BIN)/altnorm demo

test: $(VENV)/.stamp-quick  ## the suite on what installs quickly, without its slowest files
	$(PYTEST) $(PYTEST_ARGS) -m "not heavy and not slow"

test-all: $(VENV)/.stamp-heavy  ## the whole suite, with PyTorch, Spark, Ray and a browser; no skips
	ALTNORM_REQUIRE_ALL=1 $(PYTEST) $(PYTEST_ARGS)

test-oldest:  ## the suite of `make test` on the oldest versions that we support
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=requirements/oldest.txt

mutants: $(VENV)/.stamp-mutants  ## change the rules that decide, one at a time, and print what no test notices; hours
	.ci/mutants

check: $(VENV)/.stamp-quick  ## lint, format, types, architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.stamp-quick  ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.stamp-heavy  ## print the table of timings
	$(BIN)/python -m benchmarks

benchmark: $(VENV)/.stamp-benchmark  ## compare with other packages on 250 classifiers, from where it stopped; needs only the package index
	$(BIN)/python -m experiments.benchmark

docs: $(VENV)/.stamp-docs  ## build the site into docs/_build/html, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# Folders with the predictions of the suite (.npz) and with the data sets.
PREDICTIONS ?= predictions
DATASETS    ?= datasets
STUDY       := $(BIN)/python -m

samples: $(VENV)/.stamp-heavy $(VENV)/.stamp-benchmark  ## say which pages of the studies are out of date: PREDICTIONS=folder DATASETS=folder
	$(STUDY) experiments.samples --predictions $(PREDICTIONS) --datasets $(DATASETS)

reproduce: $(VENV)/.stamp-heavy $(VENV)/.stamp-benchmark  ## run the studies that need no GPU, from where it stopped; without folders those that need none: PREDICTIONS=folder DATASETS=folder
	$(STUDY) experiments.reproduce --predictions $(PREDICTIONS) --datasets $(DATASETS)

constraints:  ## resolve every extra and group afresh and pin what came out
	requirements/refresh

# The version that CHANGELOG.md describes last.
VERSION ?= $(shell sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | head -1)
FRESH   := .venv-release

release-check: $(VENV)/.stamp-release  ## build the version that CHANGELOG.md names, check it, and run the demo from its wheel in a fresh environment
	rm -rf dist $(FRESH)
	SETUPTOOLS_SCM_PRETEND_VERSION=$(VERSION) $(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv $(FRESH)
	$(FRESH)/bin/python -m pip install --quiet --disable-pip-version-check "dist/altnorm-$(VERSION)-py3-none-any.whl[cli]"
	cd $(FRESH) && test "$$(bin/altnorm --version)" = "altnorm $(VERSION)" && bin/altnorm demo
	@echo "Version $(VERSION) is ready to tag, but for what only a person can do: CONTRIBUTING.md, To release."

clean:  ## remove the environment and everything built
	rm -rf $(VENV) .venv-oldest $(FRESH) build dist docs/_build docs/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/.stamp-venv: $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "altnorm needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) "pip>=25.3"
	touch $@

$(VENV)/.stamp-demo: $(VENV)/.stamp-venv pyproject.toml
	$(PIP_INSTALL) --editable ".[cli,report,display]"
	touch $@

$(VENV)/.stamp-quick: $(VENV)/.stamp-venv pyproject.toml
	$(PIP_INSTALL) --editable ".[$(QUICK_EXTRAS)]" --group test --group dev
	touch $@

$(VENV)/.stamp-mutants: $(VENV)/.stamp-quick
	$(PIP_INSTALL) --group mutants
	touch $@

$(VENV)/.stamp-docs: $(VENV)/.stamp-venv pyproject.toml
	$(PIP_INSTALL) --editable ".[$(QUICK_EXTRAS)]" --group docs
	touch $@

$(VENV)/.stamp-benchmark: $(VENV)/.stamp-venv pyproject.toml
	$(PIP_INSTALL) --editable ".[display]" --group benchmark
	touch $@

$(VENV)/.stamp-release: $(VENV)/.stamp-venv pyproject.toml
	$(PIP) --group release
	touch $@

$(VENV)/.stamp-heavy: $(VENV)/.stamp-quick requirements/system
	requirements/system
	$(PIP_INSTALL) --editable ".[$(QUICK_EXTRAS),$(HEAVY_EXTRAS)]" --group test --group browser --group huggingface --group mlflow
	touch $@
