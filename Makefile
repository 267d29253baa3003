# Everything runs in .venv, which the first target makes from the locked requirements.
# Another Python: make PYTHON=python3.13 …   Fewer tests: make test PYTEST_ARGS='-k recall'

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST_ARGS ?= -n 2 --dist loadfile
# Those whose packages are all in the lock. tests/acceptance/test_framework_examples.py checks the others.
TYPED_EXAMPLES := $(addprefix examples/,celery_producer fastapi_chat mcp_agent openai_tools)
SUITABLE := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,$(if $(shell $(name) -c '$(SUITABLE)' 2>/dev/null && echo yes),$(name))))
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.PHONY: help demo test system shards lint types supply audit format lock faults bench shape docs clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## Play a conversation through real servers and workers, and show what is remembered
	$(BIN)/memory demo

test: lint types ## Check style and types, and run the tests (the long faults are in make faults)
	$(BIN)/pytest -m "not (slow and faults) and not system" $(PYTEST_ARGS)

# 5 is pytest's status when there is no such test.
system: $(READY) ## Run the tests that need Debian's packages, which .ci/run installs
	$(BIN)/pytest -m "system and not (slow and faults)" $(PYTEST_ARGS) || test $$? -eq 5

shards: $(READY) ## Run the tests over three shards, those that look at one shard only left out
	TEST_SHARDS=1 $(BIN)/pytest -m "not (slow and faults) and not system and not one_shard" $(PYTEST_ARGS)

lint: $(READY) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY) ## Check types
	$(BIN)/mypy
	$(BIN)/mypy --explicit-package-bases $(TYPED_EXAMPLES)

supply: $(READY) ## Check licences, look for secrets, and write the bill of materials to build/sbom.json
	$(BIN)/python -m benchmarks.supply licences
	$(BIN)/python -m benchmarks.supply secrets
	mkdir -p build && $(BIN)/python -m benchmarks.supply sbom > build/sbom.json

# In a virtual environment of its own: its packages are none of the product's.
audit: $(READY) ## Ask the service of PyPI for known weaknesses of the locked packages; needs a network
	$(PYTHON) -m venv build/audit && build/audit/bin/pip install --quiet 'pip-audit>=2.10,<3'
	build/audit/bin/pip-audit --disable-pip --require-hashes --requirement requirements.lock

format: $(READY) ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

faults: $(READY) ## Kill, freeze and cut things while the system works
	$(BIN)/python -m tests.faults

bench: $(READY) ## Measure latency and throughput; writes out-*.json
	$(BIN)/memory bench latency --memories 10000 --other-users 10 --json out-latency.json
	$(BIN)/memory bench throughput --turns 10000 --sessions 100 --json out-throughput.json

shape: $(READY) ## Print figures of the code's shape: density, names, cycles, what a change touches
	$(BIN)/python -m benchmarks.shape

docs: $(READY) ## Write the page of all settings
	$(BIN)/python -m benchmarks.settings_page > docs/configuration.md

# uv only here: it resolves for all systems and Python versions at once, which pip cannot.
COMPILE = $(BIN)/uv --quiet pip compile pyproject.toml --universal --python-version 3.11 --upgrade \
	--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links

lock: $(READY) ## Take the newest allowed versions into the requirements locks
	$(BIN)/pip install --quiet uv
	$(COMPILE) --all-extras --output-file requirements.lock
	$(COMPILE) --extra server --output-file requirements-server.lock
	$(subst pyproject.toml,deploy/helm/requirements.in,$(COMPILE)) --constraint requirements.lock \
		--output-file deploy/helm/requirements.lock

clean: ## Remove caches and what was built, not the data
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis out*.json
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	@test -n '$(PYTHON)' && $(PYTHON) -c '$(SUITABLE)' \
		|| { echo 'Python 3.11 or newer is needed; name it with make PYTHON=/path/to/python3' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	@touch $@
