PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Extra options for pytest, e.g. make test TESTS=tests/methods/dp_ebm
TESTS ?=
# Modules to put small faults into, e.g. make mutants MODULES=dprepro/judge/two_means.py
MODULES ?= dprepro/judge/two_means.py
# Parsers to fuzz, e.g. make campaign-inputs PARSERS="config card"
PARSERS ?=
# Tests at the same time, but for `make test` without TESTS: one more than processors here, as some wait. 0: in one
# process, as where other targets keep the processors busy
WORKERS ?= 3
# Options for the test of the wheel, e.g. make wheel-test WHEEL_TEST=--all
WHEEL_TEST ?=
# Installs what follows with uv, in a third of pip's time; pip does the same where uv cannot be had, or fails.
# Python compiles what is imported; pip would compile all of every library, half of the installation.
INSTALL = f() { { command -v uv || $(BIN)/python -m pip install --quiet uv; } >/dev/null; \
	PATH="$$PATH:$(BIN)" uv pip install --quiet --python $(BIN)/python "$$@" || \
	$(BIN)/python -m pip install --quiet --no-compile "$$@"; }; f
# Where this is set, every process compiles all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install install-dev quickstart test tests-of-commands tests-of-reports tests-of-methods kernels long-test golden kernels-test audit-test cluster-test nightly campaign campaign-inputs mutants planted-faults pyright docs docs-test docs-readme docs-others docs-outputs gallery lint wheel-test release check bench clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	@echo 'installing dprepro and what it needs into $(VENV)'
	@$(INSTALL) --editable '.[plot]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml
	@echo 'installing dprepro and what its tests need into $(VENV)'
	@$(INSTALL) --editable '.[dev]'
	touch $@ $(VENV)/.installed

install: $(VENV)/.installed ## Make .venv and install dprepro into it

install-dev: $(VENV)/.installed-dev ## The same, with everything the tests need

quickstart: install ## Run a small experiment on data that needs no download and show its table
	$(BIN)/dprepro run quickstart --results out/quickstart
	$(BIN)/dprepro table --config quickstart --results out/quickstart --compare

# A file stays in one process: what its tests share is made once. In the order of the folders, so
# that the long files do not come last.
IN_PARALLEL = --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
ifdef TESTS
test: install-dev ## Run the tests
	$(BIN)/python -m pytest $(IN_PARALLEL) $(TESTS)
else
# Within a make that runs several targets at a time, as `.ci/run` does, the parts are some of them.
test: install-dev kernels
	$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs 3) $(PARTS)
endif

# All tests in three processes, each of which collects only its own: a worker of pytest-xdist collects all of them, and
# what hands them out takes a tenth of the time. Three are one more than the processors here, as some tests wait. The
# first two are listed, so that all take about as long; the third has the others.
PARTS = tests-of-commands tests-of-reports tests-of-methods
COMMANDS = tests/audit tests/cli tests/tools tests/test_releases.py
REPORTS = tests/data tests/docs tests/estimators tests/experiment tests/judge tests/papers tests/release tests/report tests/results tests/rows
tests-of-commands: install-dev
	$(BIN)/python -m pytest $(COMMANDS)

# What they print is shown when they have ended, so that it does not mix with that of the first.
PART = mkdir -p out; $(BIN)/python -m pytest $(1) >out/$@.txt 2>&1; status=$$?; cat out/$@.txt; exit $$status
tests-of-reports: install-dev
	@$(call PART,$(REPORTS))

tests-of-methods: install-dev
	@$(call PART,tests dprepro $(patsubst %,--ignore=%,$(COMMANDS) $(REPORTS)))

# Before tests begin, so that none has to wait for it.
kernels: install-dev
	$(BIN)/python -c 'import importlib; from dprepro.runtime.kernels import compile_once, kernel_modules; \
	  [importlib.import_module(name) for name in kernel_modules()]; compile_once()'

long-test: install-dev ## Run the tests that .ci/run leaves out, as they take long
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "long and not docs"
	$(BIN)/python -m pytest -m docs tests/docs/test_pages.py tests/docs/test_help.py -k "not ($(README_CLONE))"

golden: install-dev ## Write the bits that small fits of every private method must have
	$(BIN)/python -m tests.golden --write

kernels-test: install-dev ## Test how kernels are compiled and kept, and that other processors give the same bits
	$(BIN)/python -m pytest --numprocesses $(WORKERS) -m "compiling and not long" tests/runtime/kernels tests/golden tests/methods/linear_regression

audit-test: install-dev | kernels ## Test that audits pass what is sound, and that attacks fail: thousands of fits
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "audits and not long" tests/attacks tests/audit

cluster-test: install-dev | kernels ## Test runs and fits on a local Dask cluster whose workers are killed
	$(BIN)/python -m pytest -m cluster tests/experiment tests/rows

# Each is long: hours together.
nightly: campaign campaign-inputs mutants planted-faults pyright long-test ## All that searches for faults at length

campaign: install-dev ## Fail every call of a small run in turn, kill runs at random, and tell what was lost
	$(BIN)/python -m tools.campaign --record out/campaign/tried.jsonl
	$(BIN)/python -m tools.campaign.real --record out/campaign/real.jsonl

campaign-inputs: install-dev ## Fuzz each parser for up to an hour, and let memory run out in small commands
	@$(INSTALL) atheris
	$(BIN)/python -m tools.campaign.memory
	$(BIN)/python -m tools.campaign.inputs $(PARSERS)

mutants: install-dev ## Put small faults into MODULES, and name those that no test notices
	$(BIN)/python -m tools.mutation $(MODULES)

planted-faults: install-dev ## Plant faults of privacy one by one, and tell who notices: curator, tests or audit
	$(BIN)/python tools/planted_faults.py --jobs 2

pyright: install-dev ## Check types of the public names as a user of pyright does; installs it, 200 MB
	@$(INSTALL) basedpyright
	$(BIN)/python -m pytest tests/test_public_functions.py -k pyright

docs: install-dev ## Build the site of all pages and the API reference in out/site, and try it in a browser
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m pytest -m site tests/docs/test_built_site.py

docs-test: install-dev ## Run every block of every document in a fresh clone
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target docs-readme docs-others

# Blocks stand on those before them: one process a clone, in order. tests/docs/conftest.py says which
# pages share the clone of README.md.
README_CLONE := README or docs/scale or docs/own
docs-readme: install-dev | kernels
	$(BIN)/python -m pytest -m docs tests/docs/test_pages.py -k "$(README_CLONE)"

docs-others: install-dev | kernels
	$(BIN)/python -m pytest -m "docs and not long" tests/docs/test_pages.py tests/docs/test_help.py -k "not ($(README_CLONE))"

docs-outputs: install-dev ## Write the outputs that the documents state anew
	$(BIN)/python -m tests.docs.counts
	$(BIN)/python -m tests.docs.forensics_tables
	$(BIN)/python -m tests.docs.formats
	$(BIN)/python -m tests.docs.notebooks
	$(BIN)/python -m tests.docs.outputs

gallery: install-dev ## Draw the pictures of docs/gallery.md anew
	$(BIN)/python .ci/gallery.py

lint: install-dev ## Check style, types, import rules, and the files that CI services read
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

# Needs nothing of what install-dev installs: both can go on at a time.
wheel-test: $(VENV)/bin/python ## Run the quickstart from the wheel: newest Python, and oldest with the lowest versions; release from it
	$(BIN)/python .ci/wheel.py $(WHEEL_TEST)
	$(BIN)/python tools/wheel_release.py

release: $(VENV)/bin/python ## Make wheel, sdist, list of parts (SBOM) and checksums of this commit in out/release
	$(BIN)/python .ci/release.py

check: install-dev | kernels ## Judge the committed results, and run two splits of every method on Adult again
	$(BIN)/dprepro check --fast --require-all

bench: install-dev ## Measure speed beside the peers
	$(BIN)/python benchmarks/ebm_fit.py

clean: ## Remove .venv and caches
	rm -rf $(VENV) out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
