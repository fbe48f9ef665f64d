"""Draws the picture that `poolgrad demo` pools: three spheres on a chequered floor, traced ray by ray."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from poolgrad._common import png

Vectors = npt.NDArray[np.float64]

SIZE, SAMPLES = 96, 4
TARGET = Path(__file__).parents[1] / "src/poolgrad/data/picture.png"
LIGHT = np.array([-0.55, 0.75, -0.45]) / np.linalg.norm([-0.55, 0.75, -0.45])
SPHERES = [  # centre, radius, colour
    ((-1.05, 0.9, 4.6), 0.9, (0.92, 0.26, 0.18)),
    ((1.0, 0.62, 4.1), 0.62, (0.16, 0.45, 0.85)),
    ((0.12, 0.34, 3.0), 0.34, (0.98, 0.80, 0.25)),
]


def hit(origin: Vectors, ray: Vectors, centre: tuple[float, ...], radius: float) -> Vectors:
    """Distance along each ray to a sphere, inf where it passes by."""
    to = np.asarray(centre) - origin
    along = (to * ray).sum(-1)
    inside = radius**2 - (to**2).sum(-1) + along**2
    near = along - np.sqrt(np.maximum(inside, 0))
    return np.where((inside > 0) & (near > 1e-6), near, np.inf)


def sky(ray: Vectors) -> Vectors:
    """Paler towards the horizon."""
    height = np.clip(ray[..., 1:2], 0, 1) ** 0.6
    return (1 - height) * np.array([0.93, 0.90, 0.84]) + height * np.array([0.32, 0.52, 0.80])


def floor(point: Vectors) -> Vectors:
    """Chequers that fade into the distance."""
    light = ((np.floor(point[..., 0] * 1.25) + np.floor(point[..., 2] * 1.25)) % 2)[..., None]
    tiles = np.where(light > 0, [0.86, 0.82, 0.74], [0.30, 0.28, 0.33])
    fade = np.exp(-np.maximum(point[..., 2:3] - 3, 0) / 9)
    return fade * tiles + (1 - fade) * np.array([0.80, 0.77, 0.72])


def render() -> npt.NDArray[np.uint8]:
    """The scene at SIZE x SIZE, each pixel the mean of SAMPLES x SAMPLES rays."""
    count = SIZE * SAMPLES
    v, u = np.mgrid[0:count, 0:count] / count - 0.5
    ray = np.stack([u * 1.1, -0.03 - v * 1.1, np.ones_like(u)], axis=-1)
    ray /= np.linalg.norm(ray, axis=-1, keepdims=True)
    origin = np.array([0.0, 1.0, 0.0])
    colour, nearest = sky(ray), np.full(u.shape, np.inf)
    down = np.where(ray[..., 1] < -1e-4, -origin[1] / np.minimum(ray[..., 1], -1e-4), np.inf)
    ground = origin + ray * np.where(np.isfinite(down), down, 0)[..., None]
    shade = np.ones(u.shape)
    for centre, radius, _ in SPHERES:
        shade = np.where(np.isfinite(hit(ground, np.broadcast_to(LIGHT, ray.shape), centre, radius)), 0.42, shade)
    on_floor = np.isfinite(down)[..., None]
    colour = np.where(on_floor, floor(ground) * shade[..., None], colour)
    nearest = np.where(np.isfinite(down), down, nearest)
    for centre, radius, tint in SPHERES:
        distance = hit(origin, ray, centre, radius)
        point = origin + ray * np.where(np.isfinite(distance), distance, 0)[..., None]
        normal = (point - np.asarray(centre)) / radius
        diffuse = np.clip((normal * LIGHT).sum(-1), 0, 1)[..., None]
        mirror = ray - 2 * (ray * normal).sum(-1, keepdims=True) * normal
        glint = np.clip((mirror * LIGHT).sum(-1), 0, 1)[..., None] ** 40
        lit = np.asarray(tint) * (0.22 + 0.85 * diffuse) + 0.10 * sky(mirror) + 0.75 * glint
        colour = np.where((distance < nearest)[..., None], lit, colour)
        nearest = np.minimum(nearest, distance)
    mean = np.clip(colour, 0, 1).reshape(SIZE, SAMPLES, SIZE, SAMPLES, 3).mean(axis=(1, 3))
    return np.round(255 * mean ** (1 / 1.25)).astype(np.uint8)


if __name__ == "__main__":
    png.write(TARGET, render())
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")
