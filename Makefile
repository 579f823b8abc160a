# `make matrix` measures and reports, `make test` runs the tests; each sets up all it needs first.
# ARGS goes to the command: make matrix ARGS="--suite seed --rounds 10"
# HISTORY_PAGE is a page of `harness history report`, for the site: make docs HISTORY_PAGE=history.html
# WHEELS is a folder that all packages come from in place of the network: make matrix WHEELS=pack/wheels

PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
SITE := build/site
ifdef WHEELS
export HARNESS_WHEELS := $(abspath $(WHEELS))
OFFLINE := --no-index --find-links $(HARNESS_WHEELS)
endif
# written last: an environment without it is begun anew
READY := .venv/.ready

.PHONY: matrix test test-all lint format bench gpu-check campaign simulate schema reference requirements docs examples golden clean help
.DEFAULT_GOAL := help

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 15

matrix: $(READY) ## TensorFlow 2.0 vs 1.14, from the images to the report
	@$(BIN)/harness matrix $(ARGS)

# a process of pytest for each core: make test WORKERS=1
WORKERS := logical
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

test: $(READY) ## the quick tests, and one run in containers if Docker Engine is running; says what it left out
	@$(PYTEST) --tier quick $(ARGS)

test-all: $(READY) ## all tests of CI; ARGS="--tier rest" leaves out those of make test
	@$(PYTEST) --tier all $(ARGS)

lint: $(READY) ## format, lint, types, the arrows between the folders, declared dependencies, spelling, and the oldest Python's syntax
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry harness
	$(BIN)/codespell
	$(BIN)/python -m tests.oldest_python

format: $(READY) ## format and mend what can be mended
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(READY) ## the figures of bench/performance.md, on this machine
	$(BIN)/python -m bench $(ARGS)

gpu-check: $(READY) ## what needs a GPU, in ten minutes, and a bundle of it for an issue
	@$(BIN)/python -m bench.gpu_check $(ARGS)

campaign: $(READY) ## a million mangled inputs, faults by the thousand, each scenario in each release; hours
	HARNESS_CAMPAIGN=1 $(PYTEST) --tier campaign $(ARGS)
	HARNESS_CAMPAIGN=1 HARNESS_FUZZ=50 $(PYTEST) --tier all tests/fuzz tests/faults $(ARGS)

simulate: $(READY) ## the tables of bench/simulation/README.md: how often the verdicts are right, where the truth is known
	$(BIN)/python -m bench.simulation $(ARGS)

schema: $(READY) ## docs/schema, from the dataclasses
	$(BIN)/python -m bench.schemas

reference: $(READY) ## docs/reference/cli.md, the names in python-api.md, and the index of `harness ask`, from the code
	$(BIN)/python -m bench.reference
	$(BIN)/python -m bench.stored

# uv.txt has uv alone, which installs everything else
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url
requirements: $(READY) ## requirements.txt and images/uv.txt, from pyproject.toml; ARGS=--upgrade takes the newest versions
	$(COMPILE) --group dev --all-extras $(ARGS) pyproject.toml -o requirements.txt
	echo uv | $(COMPILE) --no-annotate $(ARGS) - -o images/uv.txt

# every page is read again, because Sphinx doesn't repeat the warnings of unchanged pages
docs: $(READY) ## the documentation site in build/site; a warning, such as of a broken link, is an error
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --write-all \
		--doctree-dir $(SITE).doctrees --conf-dir docs/site . $(SITE)
	@echo "Open $(SITE)/index.html in a browser" >&2

examples: $(READY) ## the reports of docs/examples, from the launches stored there; ARGS="NAME results/RUN" stores others
	$(BIN)/python -m bench.examples $(ARGS)

golden: $(READY) ## the golden files in tests/**/__snapshots__, as the code writes them now: read the diff
	@$(PYTEST) --tier all --snapshot-update $(ARGS)

clean: ## what make made
	rm -rf .venv build/site build/site.doctrees .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(READY): requirements.txt images/uv.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: the harness needs Python 3.11 or later; none is on the PATH. Name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Setting up .venv with $(PYTHON)" >&2
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(OFFLINE) --require-hashes --requirement images/uv.txt
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python $(OFFLINE) --require-hashes requirements.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python $(OFFLINE) --no-deps --no-build-isolation --editable .
	@touch $(READY)
