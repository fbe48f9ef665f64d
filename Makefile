# Two commands: `make demo` and `make test`. Everything goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check

.PHONY: demo studio test install lint docs bits soak sanitize fuzz coverage mutate clean wheel check-wheel check-sdist reproducible lock check-workflows

demo studio: install
	$(BIN)/poolgrad $@

install: .venv/installed

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml CMakeLists.txt requirements/build.txt $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.[ch]pp' -o -name '*.png' \
    -o -name '*.js' -o -name '*.css' -o -name '*.html' -o -name '*.svg' -o -name '*.json') | $(BIN)/python
	$(PIP) --require-hashes -r requirements/build.txt
	$(PIP) --no-build-isolation --no-deps .
	touch $@

.venv/tools: requirements/test.txt | $(BIN)/python
	$(PIP) --require-hashes -r requirements/test.txt
	touch $@

test: lint install
	$(BIN)/python tools/browser.py  # for tests/studio, which are skipped without one
	$(BIN)/python -m pytest

lint: install .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy src/poolgrad/raw_ops.py  # which its stub hides from the line above
	if command -v clang-format > /dev/null; then clang-format --dry-run src/core/*.[ch]pp fuzz/*.[ch]pp; fi

bits coverage docs mutate sanitize: install .venv/tools
	$(BIN)/python tools/$@.py

soak: install
	$(BIN)/python tools/soak.py --minutes $(or $(MINUTES),30)

fuzz: install .venv/tools
	$(BIN)/python fuzz/run.py --seconds $(or $(SECONDS),60)

wheel check-wheel check-sdist reproducible lock check-workflows:
	$(PYTHON) tools/package.py $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
