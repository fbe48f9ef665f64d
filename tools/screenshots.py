"""Draws docs/studio/*.png: the journeys through the studio, light and dark, at 1280x800; the first screen at four more sizes.

    python tools/screenshots.py [journey ...]

Needs playwright and a Chromium on the PATH. Look at what it made before you commit it.
"""

from __future__ import annotations

import base64
import struct
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "tools")]

import browser  # noqa: E402
import hands  # noqa: E402

TARGET = ROOT / "docs" / "studio"
Array = npt.NDArray[Any]
CELL = "dx[0,1,1,1,0] = 3"


def problem(page: Any) -> None:
    """Seed 003 as pictured: the error at its pin."""
    hands.turn(page, "seed 003 as pictured")
    page.get_by_label("dx input orig_output", exact=True).focus()


def repaired(page: Any) -> None:
    """After one press: 3, 4, 5, 6 in the right cells."""
    problem(page)
    page.locator(".repair").click()
    hands.settled(page)
    page.get_by_label(CELL, exact=True).hover()


def two_problems(page: Any) -> None:
    """Seed 004 as pictured: two problems at once."""
    hands.turn(page, "seed 004 as pictured")


def why_zero(page: Any) -> None:
    """Why one gradient cell is zero: the first screen."""


def steps(page: Any) -> None:
    """Three windows have dropped their gradients."""
    for _ in range(3):
        page.get_by_label("Next window").click()


def tour(page: Any) -> None:
    """The first step of the tour."""
    page.get_by_role("button", name="Tour", exact=True).click()


def python(page: Any) -> None:
    """The page as Python."""
    page.get_by_role("tab", name="Python").click()
    page.locator(".code").wait_for()
    page.get_by_label("Fit page").click()


def typing(page: Any) -> None:
    """An error at its character, while it is typed."""
    page.get_by_label("y ksize", exact=True).fill("1,2,x,1")
    page.locator(".mark i").wait_for()


def alone(page: Any) -> None:
    """The exported HTML, opened from disk without a network."""
    with tempfile.TemporaryDirectory() as folder:
        target = hands.export(page, "HTML", Path(folder))
        page.context.set_offline(True)
        page.goto(target.as_uri())
        page.get_by_label("dx[0,3,3,0] = 40", exact=True).hover()


def keyboard(page: Any) -> None:
    """The palette, searched by typing."""
    page.keyboard.press("/")
    page.keyboard.type("argmax")


def forward(page: Any) -> None:
    """The seven forward pictures."""
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem", name="Example seven forward pictures").click()
    hands.settled(page)
    page.mouse.move(0, 0)


def pools(page: Any) -> None:
    """Pools of arrays: a maximum, a mean and a norm share one gradient in three ways."""
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem", name="Example Maximum, mean and norm").click()
    hands.settled(page)
    page.mouse.move(0, 0)


def picture(page: Any) -> None:
    """A picture through FractionalMaxPool and back."""
    hands.turn(page, "Your picture")
    page.locator(".bigmap canvas[tabindex]").first.hover(position={"x": 121, "y": 121})


def pixels(chromium: Any, shot: bytes) -> Array:
    """The colours of a screenshot, (height, width, 3); the browser that made it also reads it."""
    reader = chromium.new_page()
    height, width, text = reader.evaluate(
        """async (data) => {
          const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
          const image = await createImageBitmap(new Blob([bytes]));
          const pen = new OffscreenCanvas(image.width, image.height).getContext('2d');
          pen.drawImage(image, 0, 0);
          const raw = pen.getImageData(0, 0, image.width, image.height).data;
          let text = '';
          for (let i = 0; i < raw.length; i += 30000) text += String.fromCharCode(...raw.subarray(i, i + 30000));
          return [image.height, image.width, btoa(text)];
        }""",
        base64.b64encode(shot).decode(),
    )
    reader.close()
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[..., :3]


def smaller(picture: Array) -> bytes:
    """A PNG with 256 colours, every other one as the nearest of them: a third of the size."""
    codes = picture.astype(np.int64) @ np.array([65536, 256, 1])
    found, place, count = np.unique(codes, return_inverse=True, return_counts=True)
    colours = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    palette, far, nearest = [int(count.argmax())], np.inf, np.zeros(len(found), np.uint8)
    for number in range(256):  # next comes the colour that most pixels miss most
        gap = np.abs(colours - colours[palette[number]]).sum(axis=1)
        nearest[gap < far] = number
        far = np.minimum(far, gap)
        palette.append(int((far * np.sqrt(count)).argmax()))
    table = colours[palette[:256]].astype(np.uint8).tobytes()
    rows = np.concatenate([np.zeros((len(picture), 1), np.uint8), nearest[place].reshape(codes.shape)], axis=1)
    header = struct.pack(">IIBBBBB", picture.shape[1], len(picture), 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", table),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


JOURNEYS: dict[str, Callable[[Any], None]] = {
    "1-problem": problem,
    "1-repaired": repaired,
    "2-two-problems": two_problems,
    "3-why-zero": why_zero,
    "4-python": python,
    "5-typing": typing,
    "6-alone": alone,
    "7-palette": keyboard,
    "8-picture": picture,
    "9-forward": forward,
    "10-steps": steps,
    "11-tour": tour,
    "13-pools": pools,
    "12-wide": why_zero,
    "12-small": why_zero,
    "12-tablet": why_zero,
    "12-phone": why_zero,
}
SIZES = {"12-wide": (1600, 1000), "12-small": (1024, 768), "12-tablet": (768, 1024), "12-phone": (390, 844)}


def main() -> int:
    """Draw the journeys that are named, or all."""
    from playwright.sync_api import sync_playwright

    from poolgrad.studio.command import opening
    from poolgrad.studio.server import serve

    wanted = sys.argv[1:] or list(JOURNEYS)
    server, address = serve(opening(None))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    TARGET.mkdir(exist_ok=True)
    with sync_playwright() as tool:
        chromium = tool.chromium.launch(executable_path=browser.find(), args=["--no-sandbox"])
        for name in wanted:
            for scheme in ("light", "dark"):
                width, height = SIZES.get(name, (1280, 800))
                context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                context.add_init_script("localStorage.setItem('poolgrad tour', 'seen')")
                page = context.new_page()
                page.goto(address)
                page.get_by_label("Status").get_by_text("ran").wait_for()
                hands.settled(page)
                JOURNEYS[name](page)
                page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                path = TARGET / f"{name}-{scheme}.png"
                path.write_bytes(smaller(pixels(chromium, page.screenshot(animations="disabled"))))
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes", flush=True)
                context.close()
        chromium.close()
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
