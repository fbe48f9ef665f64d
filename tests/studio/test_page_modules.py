"""The modules of the page: small, in plain ES, importing each other by name and nothing else."""

from __future__ import annotations

import re

import pytest

from poolgrad.studio.page import static

MODULES = {name: content.decode() for name, (content, _) in static().items() if name.endswith(".js")}
FILE_LINES, FUNCTION_LINES = 400, 40


def functions(text: str) -> list[tuple[int, str]]:
    """Return lines and first line of every function and method: from its head to the closing brace at the same indent."""
    lines = text.splitlines()
    found = []
    for i, line in enumerate(lines):
        head = re.match(
            r"( *)(?:export )?(?:async )?(?:function \w+|static \w+|get \w+|(?!if|for|while|switch|catch)\w+)\(.*\) \{$",
            line,
        )
        if head:
            end = next(k for k in range(i, len(lines)) if lines[k].startswith(head[1] + "}"))
            found.append((end - i + 1, line.strip()))
    return found


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_short_and_so_are_its_functions(name):
    assert len(MODULES[name].splitlines()) <= FILE_LINES
    assert [f for f in functions(MODULES[name]) if f[0] > FUNCTION_LINES] == []


def test_the_measure_of_functions_sees_them():
    text = "export function a() {\n  b();\n}\nclass C {\n  m(x) {\n    if (x) {\n    }\n  }\n}\n"
    assert functions(text) == [(3, "export function a() {"), (4, "m(x) {")]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_modules_that_exist(name):
    for what in re.findall(r"^(?:import|export) .*?from '([^']+)'", MODULES[name], re.MULTILINE | re.DOTALL):
        stem = what.removeprefix("poolgrad/")
        assert what.startswith("poolgrad/")
        assert f"{stem}.js" in MODULES
    assert "import(" not in MODULES[name].replace("import('poolgrad/", "")


@pytest.mark.parametrize("name", MODULES)
def test_a_module_runs_no_text(name):
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert word not in MODULES[name]


def test_no_module_has_a_list_of_ops():
    facts = {"MaxPool", "AvgPool", "FractionalMaxPool", "MaxPoolGrad"}
    for name, text in MODULES.items():
        assert not facts & set(re.findall(r"\w+", text)), name


def test_the_colours_can_be_told_apart_without_hue(page):
    """Lightness rises or falls strictly along each map, also as people without red or green receptors see it."""
    maps = page.evaluate("async () => (await import('poolgrad/colour')).MAPS")
    kinds = {
        "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "protan": (
            (0.152, 1.053, -0.205),
            (0.115, 0.786, 0.099),
            (-0.004, -0.048, 1.052),
        ),  # Machado et al. 2009, severity 1
        "deutan": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    }

    def linear(v: float) -> float:
        return v / 255 / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4

    for theme, pair in maps.items():
        for seen in kinds.values():
            light = {
                role: [sum(w * sum(a * linear(c) for a, c in zip(row, stop, strict=True)) for w, row in zip((0.2126, 0.7152, 0.0722), seen, strict=True)) for stop in stops]
                for role, stops in pair.items()
            }  # fmt: skip
            sign = -1 if theme == "light" else 1
            value, gradient = light["value"], light["gradient"]
            middle = len(gradient) // 2
            assert value == sorted(value, reverse=sign < 0)
            assert gradient[middle:] == sorted(gradient[middle:], reverse=sign < 0)
            assert gradient[: middle + 1] == sorted(gradient[: middle + 1], reverse=sign > 0)
