# Two commands: `make demo` and `make test`. Everything goes into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test install lint docs bits soak clean

demo: install
	$(BIN)/poolgrad demo

install: .venv/installed

.venv/installed: pyproject.toml CMakeLists.txt $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.png')
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check .
	touch $@

.venv/tools: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['test'], sep='\n')" \
	  | xargs $(BIN)/python -m pip install -q --disable-pip-version-check
	touch $@

test: lint install
	$(BIN)/python -m pytest

bits: install
	$(BIN)/python tools/bits.py

MINUTES ?= 30
soak: install
	$(BIN)/python tools/soak.py --minutes $(MINUTES)

lint: install .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy src/poolgrad/raw_ops.py  # which its stub hides from the line above
	if command -v clang-format > /dev/null; then clang-format --dry-run src/core/*.[ch]pp; fi

docs: install
	$(BIN)/python tools/docs.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
