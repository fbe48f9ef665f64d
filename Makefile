# Two commands: `make demo` and `make test`. Everything goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
PYTEST := $(BIN)/python -m pytest --durations=10
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check

.PHONY: demo studio test install lint docs bench bits soak sanitize library fuzz differential coverage emulate arm64 mutate clean wheel check-wheel check-sdist reproducible lock check-workflows

demo studio: install
	$(BIN)/poolgrad $@

install: .venv/installed

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/build: requirements/build.txt | $(BIN)/python
	$(PIP) --require-hashes -r $<
	touch $@

.venv/installed: .venv/build pyproject.toml CMakeLists.txt $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.[ch]pp' -o -name '*.h' -o -name '*.png' \
    -o -name '*.js' -o -name '*.css' -o -name '*.html' -o -name '*.svg' -o -name '*.json') | $(BIN)/python
	$(PIP) --no-build-isolation --no-deps .
	touch $@

.venv/tools: requirements/test.txt .venv/build
	$(PIP) --require-hashes -r $<
	touch $@

# Frameworks are large, and not to be had everywhere: without them their tests are skipped, which pytest says.
.venv/frameworks: requirements/frameworks.txt .venv/tools
	if $(PIP) --only-binary :all: -r $<; then touch $@; else echo "frameworks: not installed, their tests are skipped" >&2; fi

# Tests that only compute run in JOBS processes, a file at a time. Tests that watch the clock or the machine run alone, after them.
test:
	$(MAKE) -j2 .venv/frameworks install  # one waits for the network while the other compiles
	$(MAKE) lint
	if test -e .venv/frameworks; then $(BIN)/python -m poolgrad.jax build && $(BIN)/python -m poolgrad.torch build && $(BIN)/python -m poolgrad.tensorflow build; fi
	$(BIN)/python tools/browser.py  # for tests/studio, which are skipped without one
	$(BIN)/python tools/typescript.py  # for the types of the studio's modules, which are skipped without it
	@failed=; \
	$(PYTEST) -n $(JOBS) --dist loadfile -m "not clock" || failed="$$failed side-by-side"; \
	$(PYTEST) -m clock $$(grep -rl --include='test_*.py' 'mark\.clock' tests) || failed="$$failed alone"; \
	if test -n "$$failed"; then echo "make test: FAILED:$$failed" >&2; exit 1; fi; \
	echo "make test: passed"

lint: install .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/mypy src/poolgrad/raw_ops.py  # which its stub hides from the line above
	if command -v clang-format > /dev/null; then clang-format --dry-run src/core/*/*.[ch]pp fuzz/*.[ch]pp; fi

bits coverage emulate mutate sanitize: install .venv/tools
	$(BIN)/python tools/$@.py

arm64: install .venv/tools
	$(BIN)/python tools/arm64.py $(ARM64)

docs: install .venv/tools
	$(BIN)/python tools/map.py
	$(BIN)/python tools/docs.py

library:  # libpoolgrad for programs in C and C++, without Python: docs/c.md
	cmake -S . -B build/library -DPOOLGRAD_LIBRARY=ON
	cmake --build build/library --parallel $(JOBS)
	cmake --install build/library --prefix build/library/installed --strip

bench: install
	$(BIN)/python -m benchmarks $(CELLS)

soak: install
	$(BIN)/python tools/soak.py --minutes $(or $(MINUTES),30)

fuzz: install .venv/tools
	$(BIN)/python fuzz/run.py --seconds $(or $(SECONDS),60)

differential: install .venv/frameworks
	$(BIN)/python fuzz/generators.py --calls $(or $(CALLS),2000) $(GENERATORS)

wheel check-wheel check-sdist reproducible lock check-workflows:
	$(PYTHON) tools/package.py $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
