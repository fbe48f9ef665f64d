"""Files that are opened, dropped and exported: where their blocks land, what they are called, and what a picture shows."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hands import export, open_files, place, select, settled, turn, wire, write

COVERED = """() => {
  const boxes = [...document.querySelectorAll('.block')].map((block) => [block.dataset.id, block.getBoundingClientRect()]);
  const shared = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  return boxes.flatMap(([one, a], i) => boxes.slice(i + 1).filter(([, b]) => shared(a, b)).map(([other]) => [one, other]));
}"""

HIDDEN = """() => {
  const top = Math.min(...['.zoom', '.status'].map((name) => document.querySelector(name).getBoundingClientRect().top));
  const room = document.querySelector('.canvas').getBoundingClientRect();
  const boxes = [...document.querySelectorAll('.block')].map((block) => [block.dataset.id, block.getBoundingClientRect()]);
  return boxes.filter(([, box]) => box.bottom > top || box.top < room.top || box.left < room.left || box.right > room.right).map(([id]) => id);
}"""

DROP = """(files) => {
  const data = new DataTransfer();
  for (const [name, b64] of files) data.items.add(new File([Uint8Array.from(atob(b64), (c) => c.charCodeAt(0))], name));
  const canvas = document.querySelector('.canvas');
  const { left, top } = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new DragEvent('drop', { dataTransfer: data, clientX: left + 150, clientY: top + 80, bubbles: true, cancelable: true }));
}"""

COLOURS = """async (b64) => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(b64), (c) => c.charCodeAt(0))]));
  const pen = new OffscreenCanvas(image.width, image.height).getContext('2d');
  pen.drawImage(image, 0, 0);
  return new Set(new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer)).size;
}"""

TEXTS = """async () => {  // what the exported picture writes
  const { picture } = await import('poolgrad/picture');
  const { fillText } = CanvasRenderingContext2D.prototype;
  const said = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    said.push({ text, x, y, width: this.measureText(text).width, align: this.textAlign });
    fillText.call(this, text, x, y);
  };
  await picture(studio.flow);
  CanvasRenderingContext2D.prototype.fillText = fillText;
  return said;
}"""


def colours(page: Any, path: Path) -> int:
    """Count the colours of a picture."""
    return int(page.evaluate(COLOURS, base64.b64encode(path.read_bytes()).decode()))


def arrays(folder: Path, count: int) -> list[Path]:
    """Write arrays whose blocks differ in height."""
    paths = [folder / f"array {i}.npy" for i in range(count)]
    for i, path in enumerate(paths):
        np.save(path, np.arange(48 if i % 2 else 16, dtype=np.float32).reshape(-1, 4, 4, 1) + i)
    return paths


def saved(folder: Path, *nodes: dict[str, Any]) -> Path:
    """Write a document whose blocks have no places."""
    page = {"name": "p", "nodes": [{"id": f"c{i}", **node} for i, node in enumerate(nodes)], "wires": [], "fetch": []}
    path = folder / "document.json"
    path.write_text(json.dumps({"format": "poolgrad-graph", "version": 1, "pages": [page], "data": {}}))
    return path


def test_files_land_apart_and_are_called_by_their_names(page, tmp_path):
    page.get_by_label("New page").click()
    paths = arrays(tmp_path, 7)
    open_files(page, *paths[:4])
    page.wait_for_function("() => studio.store.page.nodes.length === 4")
    page.evaluate(DROP, [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in paths[4:]])
    page.wait_for_function("() => studio.store.page.nodes.length === 7")
    settled(page)
    assert page.evaluate(COVERED) == []
    names = [path.name for path in paths]
    assert page.locator(".block .file:visible").all_inner_texts() == names
    assert [said["text"] for said in page.evaluate(TEXTS) if said["text"].startswith(("array", "sha256"))] == names


@pytest.mark.parametrize("shape", ["1,200,200,1", "1,1,1,70000"])
def test_a_tensor_that_was_not_fetched_is_in_its_block_and_in_the_picture(page, tmp_path, shape):
    open_files(page, saved(tmp_path, {"op": "Random", "text": {"shape": shape}}))  # nobody looks at it
    page.locator(f'.block [aria-label="c0 result_output float32 [{shape}]"]').locator("canvas, i").first.wait_for()
    assert page.evaluate("() => studio.store.tensors.get('c0.output').values") is None
    drawn = colours(page, export(page, "PNG", tmp_path))
    page.evaluate("() => { studio.store.tensors.get('c0.output').preview = null; studio.flow.redraw(); }")
    assert drawn >= colours(page, export(page, "PNG", tmp_path)) + 6, "as many as if there were nothing to draw"


def test_numbers_stay_inside_their_cells_on_the_page_and_in_the_picture(page):
    page.get_by_label("New page").click()
    x = place(page, "Const")
    write(
        page, x, val="-12345,1e-7,-1e-7,123456.789,-0.001234,1e30,-1e30,-1e-30,-1234567,-0.5,nan,-inf", shape="1,3,4,1"
    )
    y = place(page, "MaxPool")
    write(page, y, ksize="1,1,1,1", strides="1,1,1,1")
    wire(page, f"{x}.output", f"{y}.input")
    settled(page)
    select(page, y)
    wide = page.evaluate(
        """() => [...document.querySelectorAll('.cells > i, .inspector .cell:not(.pad)')].map((cell) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          const [text, box] = [range.getBoundingClientRect(), cell.getBoundingClientRect()];
          return text.width > box.width || range.getClientRects().length > 1 ? [cell.textContent, text.width, box.width] : null;
        }).filter(Boolean)"""
    )
    assert wide == []
    said = [text for text in page.evaluate(TEXTS) if text["align"] == "center" and text["text"] != "1,3,4,1"]
    assert len(said) == 24
    assert [text for text in said if text["width"] > 26] == []


def test_the_picture_writes_a_long_shape_beside_the_name_of_the_result(page):
    page.get_by_label("New page").click()
    x = place(page, "Random")
    write(page, x, shape="2,3,300,300,4")
    settled(page)
    said = {text["text"]: text for text in page.evaluate(TEXTS)}
    name, shape = said["result_output  float32"], said["[2,3,300,300,4]"]
    assert name["x"] + name["width"] < shape["x"] - shape["width"]


def test_the_page_fits_above_the_buttons_with_its_results(page):
    for size in ((1280, 800), (768, 1024), (390, 844)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        for name in ("seed 003 repaired", "seed 004 as pictured", "Your picture"):
            turn(page, name)
            assert page.evaluate(HIDDEN) == [], f"{name} on arrival at {size}"
            page.get_by_label("Zoom in").click()
            page.get_by_label("Fit page").click()
            assert page.evaluate(HIDDEN) == [], f"{name} fitted at {size}"


ENUSPACE = """<?xml version="1.0" encoding="utf-16"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
{blocks}
</svg>"""


@pytest.mark.parametrize("kind", ["svg", "json"])
def test_blocks_of_an_opened_file_do_not_cover_each_other_when_they_have_run(page, tmp_path, kind):
    """Results of three batch entries are taller than any guess."""
    text = {"val": "arange(0,48)", "shape": "3,4,4,1", "dtype": "DT_FLOAT"}
    if kind == "json":
        path = saved(tmp_path, *[{"op": "Const", "text": text}] * 3)
    else:
        path = tmp_path / "flow.svg"
        pins = "".join(f'<pg-set-pin variable="#{name}" value="{value}"/>' for name, value in text.items())
        uses = (f'<use id="c{i}" xlink:href="#Const" x="10" y="{320 * i}">{pins}</use>' for i in range(3))
        path.write_text(ENUSPACE.format(blocks="\n".join(uses)), "utf-16")
    open_files(page, path)
    page.wait_for_function("() => document.querySelectorAll('.block .results figure').length === 3")
    assert page.evaluate(COVERED) == []
    assert page.evaluate(HIDDEN) == []
    assert page.evaluate("() => studio.store.dirty") is False
    page.keyboard.press("Control+z")
    page.get_by_label("Page seed 003 repaired", exact=True).wait_for()
