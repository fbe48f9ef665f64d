"""The documents say what the code does: generated files are up to date, examples run, links lead somewhere."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.util
import inspect
import io
import re
from pathlib import Path
from types import ModuleType

import pytest

import poolgrad
import poolgrad._common.png
from poolgrad import raw_ops
from poolgrad._ops.semantics import Kernel, WindowRule
from poolgrad._ops.table import OPS, REQUIRED

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
ADAPTERS = ("autograd", "jax", "tensorflow", "torch", "xarray")  # pages whose examples need the framework of that name
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def _load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _examples(text: str) -> str:
    """Return the fenced blocks that are sessions of an interpreter."""
    return "\n".join(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if block.startswith(">>>"))


def test_generated_files_are_what_the_table_says() -> None:
    assert _load_tool("docs").stale() == [], "run tools/docs.py"


def test_the_generator_knows_every_verb_and_every_kind_of_window() -> None:
    docs = _load_tool("docs")
    assert set(docs.FORMULAS) == set(Kernel)
    assert set(docs.WINDOWS) == set(WindowRule)


def test_the_bundled_picture_is_what_its_script_draws() -> None:
    tool = _load_tool("picture")
    drawn, stored = tool.render().astype(int), poolgrad._common.png.read(tool.TARGET).astype(int)
    # The square root and the power may differ in the last place between math libraries.
    assert abs(drawn - stored).max() <= 1


# tests/frameworks runs the examples of frameworks, in processes of their own.
ADAPTERS = {"torch", "jax", "tensorflow", "autograd", "xarray"}
EXAMPLES = [p for p in TEXTS if ">>>" in p.read_text("utf-8") and p.stem not in ADAPTERS]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_give_what_is_printed(path: Path) -> None:
    if path.stem in ADAPTERS:
        pytest.importorskip(path.stem, reason=f"{path.stem} is not installed")
    test = doctest.DocTestParser().get_doctest(_examples(path.read_text("utf-8")), {}, path.name, str(path), 0)
    assert test.examples
    report = io.StringIO()
    result = doctest.DocTestRunner().run(test, out=report.write)
    assert result.failed == 0, report.getvalue()


def test_the_readmes_eight_lines_print_what_follows_them() -> None:
    code, printed = re.search(r"```python\n([^`]*)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()  # type: ignore[union-attr]
    assert len([line for line in code.splitlines() if line]) == 8
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue() == printed


def test_the_readme_links_every_op() -> None:
    assert all(f"[{name}](docs/ops/{name}.md)" in README for name in OPS)


def test_the_readme_has_the_summary_of_speed_and_the_page_the_whole_table() -> None:
    marked = r"<!-- speed:begin -->(.*)<!-- speed:end -->"
    page = (ROOT / "docs/performance.md").read_text("utf-8")
    summary, whole = (re.search(marked, text, re.DOTALL).group(1) for text in (README, page))  # type: ignore[union-attr]
    assert "geometric mean" in summary
    assert "worst cell" not in summary
    assert "worst cell" in whole


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_links_lead_to_files_that_exist(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", path.read_text("utf-8"))
    missing = [link for link in links if not link.startswith("https://") and not (path.parent / link).exists()]
    assert missing == []


def test_the_index_links_every_page() -> None:
    index = (ROOT / "docs/index.md").read_text("utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").glob("**/*.md")} - {"index.md"}
    assert [page for page in sorted(pages) if f"]({page})" not in index] == []


def test_developers_have_at_most_thirteen_pages_and_each_begins_with_its_title() -> None:
    pages = sorted((ROOT / "docs/dev").glob("*.md"))
    assert len(pages) <= 13
    assert [page.name for page in pages if not page.read_text("utf-8").startswith("# ")] == []


def test_contributing_lists_each_tool_and_each_program_of_random_calls_with_one_line() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    listed = re.findall(r"^\| `((?:tools|fuzz)/\w+\.\w+)` \|", text, re.MULTILINE)
    programs = [
        *ROOT.glob("tools/*.py"),
        *ROOT.glob("tools/*.cmake"),
        *ROOT.glob("fuzz/*.py"),
        *ROOT.glob("fuzz/*.cpp"),
    ]
    assert sorted(listed) == sorted(path.relative_to(ROOT).as_posix() for path in programs)


def test_anchors_lead_to_headings_that_exist() -> None:
    missing = []
    for path in TEXTS:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", path.read_text("utf-8")):
            if target.startswith("https://"):
                continue
            page = (path.parent / target) if target else path
            headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
            if anchor not in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}:
                missing.append(f"{path.name}: {target}#{anchor}")
    assert missing == []


def test_the_stub_has_the_signatures_of_the_functions() -> None:
    tree = ast.parse((ROOT / "src/poolgrad/raw_ops.pyi").read_text("utf-8"))
    overloads = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in OPS]
    fields = {
        node.name: [
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        ]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    assert [stub.name for stub in overloads] == [name for name in OPS for _ in range(2)]
    for stub in overloads:
        op, real = OPS[stub.name], inspect.signature(getattr(raw_ops, stub.name))
        assert [arg.arg for arg in stub.args.kwonlyargs] == list(real.parameters)
        assert [default is None for default in stub.args.kw_defaults] == [p.default is REQUIRED for p in op.params]
        assert isinstance(stub.returns, ast.Subscript)  # a result is generic in the dtype of the cells
        assert fields.get(ast.unparse(stub.returns.value), ["output"]) == list(op.outputs)


def test_the_version_is_the_same_everywhere() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'version = "{poolgrad.__version__}"' in project
    assert f"## {poolgrad.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_map_has_one_line_per_module() -> None:
    tool = _load_tool("map")
    text = tool.page()
    assert tool.PAGE.read_text("utf-8") == text, "run tools/map.py"
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.[ch]pp"), *(ROOT / "src").rglob("*.js")]:
        named = path.name == "__init__.py" or re.search(rf"^- .*`{re.escape(path.name)}`.*: \S", text, re.MULTILINE)
        assert named, path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One sentence.", "One sentence"),
        ("Read one-field dtypes. Then more.", "Read one-field dtypes"),
        ("Write docs/dev/map.md: a line\nper module.\n\nMore.", "Write docs/dev/map.md: a line per module"),
        ("No full stop", "No full stop"),
    ],
)
def test_the_map_shows_first_sentences(text: str, sentence: str) -> None:
    assert _load_tool("map").first_sentence(text) == sentence
