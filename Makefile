# Everything a person needs: `make demo` to see it, `make test` to check it. Both work on a fresh machine.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt

.PHONY: demo demo-quick test test-all lint format docs results wheel clean

# One pip call, so that the constraints hold for every package at once and torch's CPU build is taken where offered.
# It would compile all packages on one core; compileall takes them all. A file that does not compile is no module of ours.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e
COMPILE := @$(BIN)/python -m compileall -q -j 0 $(VENV)/lib > /dev/null || true

$(VENV)/.demo: $(INPUTS)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[colmap,houses,viewer]"
	$(COMPILE)
	@touch $@

$(VENV)/.dev: $(INPUTS)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[dev]"
	$(COMPILE)
	@touch $@

# Within ten minutes on two cores, without a GPU; the quick one takes two, and shows less.
demo: $(VENV)/.demo
	$(BIN)/locus demo

demo-quick: $(VENV)/.demo
	$(BIN)/locus demo --quick

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m "not slow"

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ty check
	$(BIN)/lint-imports
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md benchmarks deploy docs ros src tests

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pages of docs/ as a site, in a small environment of its own: they need nothing of LoCUS.
$(VENV)-docs/.docs: $(INPUTS)
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check "mkdocs-material>=9.5" "mkdocstrings[python]>=0.27" "ruff>=0.9"
	@touch $@

docs: $(VENV)-docs/.docs
	$(VENV)-docs/bin/mkdocs build --strict

# The figures of the pages, measured anew with the real recordings of $LOCUS_DATA; RESULTS="pose-*" makes some of them.
results: $(VENV)/.dev
	$(BIN)/python benchmarks/results.py $(RESULTS)

# Sources and wheel as a user gets them: the wheel is built from the packed sources, installed alone, and used.
wheel:
	rm -rf dist $(VENV)-wheel
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check --target $(VENV)-wheel/build hatchling
	PYTHONPATH=$(VENV)-wheel/build $(VENV)-wheel/bin/python -m hatchling build -t sdist -d dist
	$(VENV)-wheel/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist dist/*.tar.gz
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd $(VENV)-wheel && bin/python -I ../tests/wheel_smoke.py

clean:
	rm -rf $(VENV) $(VENV)-docs $(VENV)-wheel dist site .pytest_cache .ruff_cache .hypothesis
