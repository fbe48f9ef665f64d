"""Measure the speed of the page in the browser. Take the best of several runs: other programs may run beside the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import browser_path
from hands import settled, turn

pytestmark = pytest.mark.clock

DRAW_MS, FRAME_MS, EDIT_MS = 150, 16, 100
PICTURE_MS, POINT_MS = 150, 16  # of 512 x 512 pixels in three channels
BLOCKS = 300

# A constant and a pooling in turn, in rows of twenty, each pooling wired to the constant before it.
DOCUMENT = """(count) => ({format: 'poolgrad-graph', version: 1, data: {}, pages: [{name: 'many', fetch: [],
  nodes: Array.from({length: count}, (_, i) => ({id: `b${i}`, op: i % 2 ? 'MaxPool' : 'Const', at: [(i % 20) * 256, Math.floor(i / 20) * 320],
    text: i % 2 ? {ksize: '1,2,2,1', strides: '1,2,2,1', padding: 'SAME'} : {val: 'arange(1,17)', shape: '1,4,4,1', dtype: 'DT_FLOAT'}})),
  wires: Array.from({length: count / 2}, (_, i) => [`b${2 * i}.output`, `b${2 * i + 1}.input`])}]})"""

PAINTED = "const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))));"


@pytest.fixture
def quick(chromium: Any, address: str) -> Iterator[Any]:
    """Yield a page in a browser that draws frames as fast as it can instead of waiting for the screen."""
    browser = chromium.browser_type.launch(
        executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu-vsync", "--disable-frame-rate-limit"]
    )
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    page.get_by_label("Status").get_by_text("ran").wait_for()
    settled(page)
    yield page
    browser.close()


def test_300_blocks_are_drawn_in_less_than_150_ms(quick):
    times = quick.evaluate(f"""async () => {{
      {PAINTED}
      const doc = ({DOCUMENT})({BLOCKS});
      const times = [];
      studio.runner.auto = false;
      for (let i = 0; i < 5 || (i < 25 && Math.min(...times) >= {DRAW_MS}); i++) {{
        studio.store.open({{...doc, pages: [{{...doc.pages[0], name: `many ${{i}}`}}]}});
        await painted();
        const start = performance.now();
        studio.flow.turn();
        studio.flow.render();
        times.push(await painted() - start);
      }}
      return times;
    }}""")
    print(f"300 blocks drawn: best {min(times):.0f} ms of {[round(t) for t in times]}")
    assert quick.locator(".block").count() == BLOCKS
    assert min(times) < DRAW_MS


def test_300_blocks_with_results_pan_in_less_than_16_ms_a_frame(quick):
    quick.evaluate(f"() => studio.store.open(({DOCUMENT})({BLOCKS}))")
    settled(quick)
    assert quick.locator(".block[data-status=ok]").count() == BLOCKS
    frames = quick.evaluate(
        """async (limit) => {
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const best = [];
      for (let round = 0; round < 5 || (round < 25 && Math.min(...best) >= limit); round++) {
        await frame();
        const start = performance.now();
        for (let i = 0; i < 40; i++) { studio.flow.look({ x: studio.flow.view.x + (i % 2 ? 9 : -9), y: studio.flow.view.y + 3 }); await frame(); }
        best.push((performance.now() - start) / 40);
      }
      return best;
    }""",
        FRAME_MS,
    )
    print(f"a frame while panning: best {min(frames):.1f} ms of {[round(t, 1) for t in frames]}")
    assert min(frames) < FRAME_MS


def test_an_image_through_fractional_pooling_and_back_is_redrawn_within_100_ms_of_an_edit(quick):
    turn(quick, "Your picture")
    ops = {n["op"]: n["id"] for n in quick.evaluate("() => studio.store.page.nodes")}
    assert quick.evaluate("id => studio.store.tensors.get(`${id}.output`).shape", ops["FractionalMaxPoolGrad"]) == [
        1,
        64,
        64,
        3,
    ]
    times = quick.evaluate(
        f"""async (id) => {{
      {PAINTED}
      const field = document.querySelector(`.block[data-id="${{id}}"] [data-field="attrs"]`);
      const key = `${{id}}.output`;
      const times = [];
      for (let i = 0; i < 12 || (i < 40 && Math.min(...times) >= {EDIT_MS}); i++) {{
        const before = studio.store.tensors.get(key);
        const run = new Promise((done) => studio.store.on('run', done));
        const start = performance.now();
        field.value = field.value.replace(/seed_ = \\d+;|$/, '').replace(/;?$/, ';') + ` seed_ = ${{i + 100}};`;
        field.value = field.value.replace(/^;/, '');
        field.dispatchEvent(new Event('input', {{ bubbles: true }}));
        await run;
        times.push(await painted() - start);
        if (studio.store.tensors.get(key) === before) throw new Error(`nothing new was drawn: ${{studio.store.run.problems.map((p) => p.sentence)}}`);
      }}
      return times;
    }}""",
        ops["FractionalMaxPool"],
    )
    print(f"edit to picture: best {min(times):.0f} ms of {[round(t) for t in times]}")
    assert min(times) < EDIT_MS


BIG = """{format: 'poolgrad-graph', version: 1, data: {}, pages: [{name: 'big', fetch: [], wires: [['x.output', 'y.input']], nodes: [
  {id: 'x', op: 'Random', at: [20, 20], text: {shape: '1,512,512,3', dist: 'uniform(0,1)', seed: '0', dtype: 'DT_FLOAT'}},
  {id: 'y', op: 'MaxPool', at: [300, 20], text: {ksize: '1,2,2,1', strides: '1,2,2,1', padding: 'SAME', attrs: 'data_format_ = NHWC;'}}]}]}"""


def test_a_picture_of_512_by_512_is_redrawn_and_pointed_at_quickly(quick):
    quick.evaluate(f"() => {{ studio.store.open({BIG}); studio.store.select(['y']); }}")
    settled(quick)
    quick.locator('.inspector [data-tensor="x.output"] canvas').first.wait_for()
    edits = quick.evaluate(
        f"""async () => {{
      {PAINTED}
      const field = document.querySelector('.block[data-id="y"] [data-field="ksize"]');
      const times = [];
      for (let i = 0; i < 8 || (i < 30 && Math.min(...times) >= {PICTURE_MS}); i++) {{
        const before = studio.store.tensors.get('y.output');
        const start = performance.now();
        field.value = i % 2 ? '1,2,2,1' : '1,3,3,1';
        field.dispatchEvent(new Event('input', {{ bubbles: true }}));
        while (studio.store.tensors.get('y.output') === before || !studio.store.tensors.get('y.output').values) await new Promise((done) => setTimeout(done));
        times.push(await painted() - start);
      }}
      return times;
    }}"""
    )
    points = quick.evaluate(
        f"""async () => {{
      {PAINTED}
      const times = [];
      for (let i = 0; i < 40; i++) {{
        let found = false;
        studio.store.on('relation', () => {{ found = true; }});
        const start = performance.now();
        studio.pointing.visit('y.output', 3 * (1000 + 97 * i), 'y');
        while (!found) await new Promise((done) => setTimeout(done));
        times.push(performance.now() - start);
      }}
      return times.sort((a, b) => a - b);
    }}"""
    )
    print(f"512 x 512 RGB, edit to picture: best {min(edits):.0f} ms of {[round(t) for t in edits]}")
    print(f"512 x 512 RGB, pointing: median {points[20]:.1f} ms, worst {points[-1]:.1f} ms")
    assert min(edits) < PICTURE_MS
    assert points[20] < POINT_MS
