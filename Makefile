# Everything runs from a fresh clone with Python 3.11 or later.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
DEBIAN := sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	--no-install-recommends "$$0" >/dev/null'
WORKERS ?= 2
# Each worker has a core of its own; what Python compiled once is kept.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
# What needs no server, no browser and few draws.
FAST := tests/privacy tests/randomness tests/contracts tests/survey tests/ledger tests/cli \
	tests/query/test_nonsense.py tests/query/test_places.py tests/query/test_plan.py \
	tests/test_public_surface.py tests/test_release.py tests/test_release_in_two.py

.PHONY: demo survey test test-again test-fast coverage check bench soak engines floors wheel docs clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[plot]'
	touch $@

$(VENV)/.all: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[test,check]'
	touch $@ $(VENV)/.demo $(VENV)/.serve

$(VENV)/.serve: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[serve]'
	touch $@

# A survey of one question, with its pages, on this machine.
survey: $(VENV)/.serve
	test -e survey.json || $(BIN)/deniable survey new survey.json
	$(BIN)/deniable survey serve survey.json

demo: $(VENV)/.demo
	$(BIN)/deniable demo --picture demo.png

# The tests start a Postgres server of their own; its programs come from Debian where they are missing.
$(VENV)/.postgres: $(BIN)/python
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || $(DEBIAN) postgresql
	touch $@

# Spark runs on Java.
$(VENV)/.java: $(BIN)/python
	@command -v java >/dev/null || $(DEBIAN) openjdk-17-jre-headless
	touch $@

# The browser's scripts run in Node too.
$(VENV)/.node: $(BIN)/python
	@command -v node >/dev/null || $(DEBIAN) nodejs
	touch $@

# Respondents' pages are tested in a real browser.
$(VENV)/.chromium: $(BIN)/python
	@command -v chromium >/dev/null || $(DEBIAN) chromium
	touch $@

test: $(VENV)/.all $(VENV)/.postgres $(VENV)/.java $(VENV)/.node $(VENV)/.chromium
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

# What failed runs once more, alone: a busy machine's fault goes, the code's stays. Both runs show.
test-again: $(VENV)/.all
	@echo "These failed; each must pass alone:"
	$(ONE_THREAD) $(BIN)/python -m pytest --last-failed --last-failed-no-failures none -v

test-fast: $(VENV)/.all
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup \
		-m 'not soak and not slow' -k 'not postgres' $(FAST)

# The whole suite again, line by line: takes about twice as long. The pages are in build/coverage.
coverage: $(VENV)/.all $(VENV)/.postgres $(VENV)/.java $(VENV)/.node $(VENV)/.chromium
	$(INSTALL) -e '.[coverage]'
	$(BIN)/coverage erase
	$(ONE_THREAD) $(BIN)/coverage run -m pytest -n $(WORKERS) --dist loadgroup
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report

check: $(VENV)/.all
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/documentation

bench: $(VENV)/.all
	set -e; for benchmark in benchmarks/[a-z]*.py; do $(BIN)/python $$benchmark --check; done

soak: $(VENV)/.all $(VENV)/.postgres $(VENV)/.java
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -o faulthandler_timeout=0 -m soak

# The battery on listed versions of the engines; the table is in docs/engines.md.
engines: $(VENV)/.all $(VENV)/.postgres $(VENV)/.java
	$(ONE_THREAD) $(BIN)/python tests/values/versions.py

# The lowest versions that pyproject.toml names, and a smoke suite on them.
floors: $(BIN)/python $(VENV)/.postgres $(VENV)/.java
	$(ONE_THREAD) $(BIN)/python tests/floors.py

# The wheel, in dist, tried in an empty environment.
wheel: $(BIN)/python
	$(BIN)/python tests/wheel.py

docs: $(VENV)/.all
	$(BIN)/python docs/build.py

clean:
	rm -rf $(VENV) .venv-peers .venv-peers-audit .venv-engines .venv-floors build dist demo.png .coverage* .pytest_cache .mypy_cache .ruff_cache
