"""Where cameras stand and look: panoramas from standing points, or a walk. For houses and for any mesh.

The third way, `handheld`, has its own file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import ndimage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from locus.errors import LocusError
from locus.geometry import Camera
from locus.render.camera_view import rays
from locus.render.surfaces import Mesh
from locus.scenes.rays import Tracer

HEADINGS = 6
POINTS_PER_ROOM = 7
"""Standing points in a room, so that most spots are seen from four of them."""
LONGEST_STEP = 0.3  # metres of a walk from one frame to the next, so that they overlap
LEAST_THINGS = 4
LEAST_RELIEF = 0.5
"""Metres between the near and the far tenth of a view: less is a bare wall."""
CLOSEST = 0.6
"""Metres: nothing in the middle of a view is closer."""


@dataclass(frozen=True, eq=False)
class Ground:
    """Cells of floor on which a camera can stand, and the area (a room) to which each belongs."""

    corner: tuple[float, float]
    cell: float
    free: Bool[np.ndarray, "rows columns"]
    area: Int[np.ndarray, "rows columns"]
    """Number of the area; -1 between areas (in a doorway)."""
    floor: float = 0.0

    def within(self, area: int) -> Bool[np.ndarray, "rows columns"]:
        """The free cells of one area."""
        return self.free & (self.area == area)

    def clearance(self, cells: Int[np.ndarray, "n 2"]) -> Float[np.ndarray, " n"]:
        """Metres from cells to the nearest that is not free."""
        return ndimage.distance_transform_edt(np.pad(self.free, 1))[1:-1, 1:-1][tuple(cells.T)] * self.cell

    def position(self, cells: Int[np.ndarray, "n 2"]) -> Float[np.ndarray, "n 2"]:
        """x, y of cells given as (row, column)."""
        return np.array(self.corner) + (cells[:, ::-1] + 0.5) * self.cell


@dataclass(frozen=True, eq=False)
class Eyes:
    """Sees with few rays what a view would show, to judge it."""

    tracer: Tracer
    mesh: Mesh
    things: Bool[np.ndarray, " c"]
    """Per class id: whether it is a thing."""
    camera: Camera

    def judge(self, pose: Float[np.ndarray, "4 4"]) -> tuple[float, float]:
        """The number of things seen, and the share of the view that is too close or empty."""
        small = self.camera.resized(24, 20)
        directions, length = rays(small, pose, small.pixel_grid().reshape(-1, 2))
        origins = np.broadcast_to(pose[:3, 3].astype(np.float32), directions.shape)
        hits = self.tracer.nearest(origins, directions)
        seen = hits.face >= 0
        face = hits.face[seen]
        labels, counts = np.unique(self.mesh.instance[face[self.things[self.mesh.semantic[face]]]], return_counts=True)
        depth = np.where(seen, hits.distance / length, 0)
        too_close = float((seen & (depth < CLOSEST)).mean())
        # A view that one surface fills shows nothing else, whatever peeps in at its rim.
        _, sizes = np.unique(self.mesh.instance[face], return_counts=True)
        filled = max(float(sizes.max(initial=0)) / len(depth) - 0.6, 0.0)
        if np.ptp(np.percentile(depth[seen], (10, 90))) < LEAST_RELIEF if seen.any() else True:
            filled += 0.2
        return float((counts >= 3).sum()) + 0.1 * len(labels), too_close + filled


def lens(size: tuple[int, int], degrees: float) -> Camera:
    """A camera whose images are `degrees` wide."""
    width, height = size
    focal = float(width / 2 / np.tan(np.radians(degrees) / 2))
    return Camera(width, height, focal, focal, width / 2, height / 2)


def pose_of(x: float, y: float, z: float, yaw: float, pitch: float) -> Float[np.ndarray, "4 4"]:
    """A level camera (OpenCV axes) that looks along `yaw`, up by `pitch`."""
    forward = np.array([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)])
    right = np.array([np.sin(yaw), -np.cos(yaw), 0.0])
    pose = np.eye(4)
    pose[:3, 0], pose[:3, 1], pose[:3, 2], pose[:3, 3] = right, np.cross(forward, right), forward, (x, y, z)
    return pose


def panorama(
    ground: Ground, eyes: Eyes, order: Sequence[int], frames: int | None, rng: np.random.Generator
) -> list[Float[np.ndarray, "4 4"]]:
    """Six headings from each standing point. `order` lists the areas by importance; few frames visit few of them,
    since a spot seen from one point only teaches nothing. Without a number, all areas are visited."""
    points = len(order) * POINTS_PER_ROOM if frames is None else -(-frames // HEADINGS)
    poses = []
    for area, count in visits(ground, order, points, POINTS_PER_ROOM):
        poses += _stand_in(ground, eyes, area, count, rng)
    return poses[:frames]


def visits(ground: Ground, order: Sequence[int], total: int, each: int) -> list[tuple[int, int]]:
    """The areas that are visited, and how often: the first of `order`, with about `each` of `total` visits apiece."""
    visited = list(order[: max(1, round(total / each))])
    cells = [int(ground.within(k).sum()) for k in visited]
    visited = [k for k, count in zip(visited, cells, strict=True) if count]
    if not visited:
        raise LocusError("there is no free floor on which a camera could stand; is the mesh upright and in metres?")
    return list(zip(visited, _shares(total, [np.sqrt(count) for count in cells if count]), strict=True))


def _shares(total: int, weights: list[float]) -> list[int]:
    """`total` divided in proportion to weights, each at least one."""
    exact = np.maximum(np.array(weights) / sum(weights) * total, 1.0)
    shares = np.floor(exact).astype(int)
    for k in np.argsort(shares - exact, kind="stable"):
        if shares.sum() < total:
            shares[k] += 1
    return [int(share) for share in shares]


def _stand_in(
    ground: Ground, eyes: Eyes, area: int, count: int, rng: np.random.Generator
) -> list[Float[np.ndarray, "4 4"]]:
    """Panoramas from points far from each other: each time, of a few cells far from those chosen, the one from which
    one sees most."""
    cells = np.argwhere(ground.within(area))
    position = ground.position(cells)
    room_to_breathe = np.minimum(ground.clearance(cells), 0.5)
    chosen: list[int] = []
    poses = []
    for _ in range(count):
        away = np.full(len(position), 1.4)
        for index in chosen:
            away = np.minimum(away, np.linalg.norm(position - position[index], axis=1))
        score = away + 1.5 * room_to_breathe + rng.uniform(0, 0.5, len(position))
        views = []
        for index in np.argsort(-score, kind="stable")[:: max(1, min(len(score) // 60, 8))][:3]:
            x, y = (float(v) for v in position[index])
            z, start = ground.floor + float(rng.uniform(1.35, 1.65)), float(rng.uniform(0, 2 * np.pi))
            views.append((*_headings(x, y, z, start, eyes, rng), int(index)))
        _, best, index = max(views, key=lambda view: view[0])
        chosen.append(index)
        poses += best
    return poses


def _headings(
    x: float, y: float, z: float, start: float, eyes: Eyes, rng: np.random.Generator
) -> tuple[float, list[Float[np.ndarray, "4 4"]]]:
    """Six views around, each turned a little where it would show too little; and how good they are in all."""
    poses, total = [], 0.0
    for k in range(HEADINGS):
        views = []
        for turn in (0.0, 0.2, -0.2, 0.4, -0.4):
            pitch = float(np.clip(rng.normal(-0.2, 0.06), -0.4, 0.02))
            pose = pose_of(x, y, z, start + k * 2 * np.pi / HEADINGS + turn, pitch)
            things, bad = eyes.judge(pose)
            score = min(things, LEAST_THINGS + 1) - 8 * max(bad - 0.05, 0) - 0.5 * abs(turn)
            views.append((score, pose))
            if things >= LEAST_THINGS + 1 and bad < 0.05:
                break
        score, pose = max(views, key=lambda view: view[0])
        poses.append(pose)
        total += score
    return total, poses


def walk(
    ground: Ground, eyes: Eyes, order: Sequence[int], frames: int | None, rng: np.random.Generator
) -> list[Float[np.ndarray, "4 4"]]:
    """A smooth walk through all areas that can be reached from the first, looking about; few frames go part of it."""
    path = _smooth(ground, _tour(ground, order, rng))
    arc = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    count = frames if frames is not None else max(2, int(arc[-1] / 0.15))
    length = min(float(arc[-1]), LONGEST_STEP * (count - 1))
    at = np.linspace(0, length, count)
    x, y = np.interp(at, arc, path[:, 0]), np.interp(at, arc, path[:, 1])
    z = ground.floor + rng.uniform(1.4, 1.6) + 0.02 * np.sin(at * 2 * np.pi / 0.7)
    pitch = np.clip(-0.2 + 0.06 * np.sin(at * 0.9 + rng.uniform(0, 6)), -0.4, 0)
    travel = np.arctan2(np.gradient(y), np.gradient(x)) if count > 1 else np.zeros(1)
    yaw = _look_about(eyes, np.stack([x, y, z], 1), pitch, travel, length / max(count - 1, 1))
    return [pose_of(*(float(v) for v in values)) for values in zip(x, y, z, yaw, pitch, strict=True)]


def _tour(ground: Ground, order: Sequence[int], rng: np.random.Generator) -> Int[np.ndarray, "n 2"]:
    """Cells of a shortest way through a few places of every area, keeping away from obstacles."""
    labels, _ = ndimage.label(ground.free)
    first = next((k for k in order if ground.within(k).any()), None)
    if first is None:
        raise LocusError("there is no free floor on which a camera could walk; is the mesh upright and in metres?")
    component = labels == int(np.argmax(np.bincount(labels[ground.within(first)])))
    cells = np.argwhere(component)
    clearance = ground.clearance(cells)
    number = np.full(ground.free.shape, -1)
    number[component] = np.arange(len(cells))
    edges, costs = [], []
    for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
        ends = cells + np.array([dr, dc])
        inside = (ends >= 0).all(1) & (ends < ground.free.shape).all(1)
        a, b = np.flatnonzero(inside), number[tuple(ends[inside].T)]
        a, b = a[b >= 0], b[b >= 0]
        edges.append(np.stack([a, b]))
        room = np.minimum(clearance[a], clearance[b])
        costs.append(np.hypot(dr, dc) * (1 + 0.15 / np.maximum(room, 0.02)))
    row, column = np.concatenate(edges, axis=1)
    graph = coo_matrix((np.concatenate(costs), (row, column)), shape=(len(cells), len(cells))).tocsr()
    stops = []
    for area in order:
        inside = np.flatnonzero(ground.area[tuple(cells.T)] == area)
        if len(inside):
            stops += [int(k) for k in rng.choice(inside, min(3, len(inside)), replace=False)]
    way = [stops[0]]
    while len(stops) > 1:
        # The nearest stop that is left comes next.
        start = stops.pop(0)
        distance, before = dijkstra(graph, directed=False, indices=start, return_predecessors=True)
        stops.sort(key=lambda k: distance[k])
        back = [stops[0]]
        while back[-1] != start:
            back.append(int(before[back[-1]]))
        way += back[::-1][1:]
    return cells[way]


def _smooth(ground: Ground, cells: Int[np.ndarray, "n 2"]) -> Float[np.ndarray, "n 2"]:
    """The way with its corners rounded, wherever that stays on free floor."""
    path = ground.position(cells)
    for _ in range(60):
        middle = path.copy()
        middle[1:-1] = 0.25 * path[:-2] + 0.5 * path[1:-1] + 0.25 * path[2:]
        at = ((middle - np.array(ground.corner)) / ground.cell).astype(int)
        stays = ground.free[tuple(np.clip(at[:, ::-1], 0, np.array(ground.free.shape) - 1).T)]
        path = np.where(stays[:, None], middle, path)
    return path


def _look_about(
    eyes: Eyes,
    position: Float[np.ndarray, "n 3"],
    pitch: Float[np.ndarray, " n"],
    travel: Float[np.ndarray, " n"],
    step: float,
) -> Float[np.ndarray, " n"]:
    """Headings that show things and turn slowly: the cheapest sequence over a circle of headings (Viterbi)."""
    count = 24
    headings = np.arange(count) * 2 * np.pi / count
    cost = np.zeros((len(position), count))
    for i, (x, y, z) in enumerate(position):
        for k, heading in enumerate(headings):
            things, bad = eyes.judge(pose_of(float(x), float(y), float(z), float(heading), float(pitch[i])))
            cost[i, k] = -min(things, LEAST_THINGS + 1.5) + 14 * max(bad - 0.03, 0)
        cost[i] += 0.35 * (1 - np.cos(headings - travel[i]))
    apart = np.abs((headings[:, None] - headings[None] + np.pi) % (2 * np.pi) - np.pi)
    # About 60 degrees of turning a metre are easy.
    turning = 1.2 * np.maximum(apart - max(1.1 * step, 0.12), 0) ** 2 / 0.12 + 0.1 * apart
    total, choice = cost[0], np.zeros(cost.shape, int)
    for i in range(1, len(cost)):
        ways = total[:, None] + turning
        choice[i] = np.argmin(ways, axis=0)
        total = ways[choice[i], np.arange(count)] + cost[i]
    best = [int(np.argmin(total))]
    for i in range(len(cost) - 1, 0, -1):
        best.append(int(choice[i][best[-1]]))
    yaw = np.unwrap(headings[best[::-1]])
    # Rounded over a quarter of a metre; frames further apart than that would be turned to what neither showed.
    return ndimage.gaussian_filter1d(yaw, 0.25 / max(step, 1e-3), mode="nearest")
