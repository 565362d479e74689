"""Which frames see the same: the overlap of the frames of a scene, as a sparse matrix, and frames drawn by it.

Most frames of a long recording see nothing of each other, so not all pairs are looked at. Space is divided into cubes,
and each cube knows the frames that have a patch in it. What a camera can see lies in a few of these cubes, and only the
frames found there are compared with it.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Float32, Int
from numpy import ndarray
from scipy.sparse import csc_array, csr_array
from scipy.spatial import KDTree

from locus.geometry import invert, transform
from locus.scenes.scene import Scene
from locus.scenes.visibility import GRID, REACH, FrameGeometry, hidden_beyond, read_frames, visible

KEPT = 1000  # frames whose geometries are kept: less than 100 MB
PARTNERS = 256  # frames that a frame is compared with at most
CUBES = 8  # along the depth of the median frame
ROUNDING = 1.01  # cubes are taken for a little larger than they are: points are kept in single precision
MIN_OVERLAP = 0.05  # a frame that sees less of the seed frame than this is not drawn with it


def overlap(scene: Scene, grid: tuple[int, int] = GRID, most: int = PARTNERS) -> csr_array:
    """`overlap(scene)[a, b]`: the share of frame a's patches that frame b sees, from 0 to 1; a sparse matrix.

    A patch is seen if its point lies before b's camera, inside b's image, and not behind the surface that b sees there
    (where b has no depth, not farther than three times its greatest depth). Frames that cannot be read overlap nothing,
    and are named in a warning; nor do frames without a valid patch.

    Each frame is compared with `most` frames at most. Where more of them could be seen, as from a camera that stands
    still, so many are drawn. So memory and time grow with the number of frames, however much these overlap.
    """
    return overlap_of(
        len(scene),
        lambda: read_frames(scene, lambda frame: FrameGeometry.of(frame, grid), size=lambda camera: None),
        most,
    )


def overlap_of(frames: int, read: Callable[[], Iterable[tuple[int, FrameGeometry]]], most: int = PARTNERS) -> csr_array:
    """The same for frames by their geometries, each with the frame's number; of many frames they are read twice."""
    kept = list(read()) if frames <= KEPT else None
    stored, counts, depths = bytearray(), np.zeros(frames, np.int64), np.zeros(frames)
    for number, geometry in kept or read():
        stored += geometry.points.tobytes()  # one piece: many small ones between what threads read would be scattered
        counts[number], depths[number] = len(geometry.points), geometry.depth.max()
    shares = csr_array((frames, frames), dtype=np.float32)
    if not (counts.any() and depths.any()):
        return shares
    points = np.split(np.frombuffer(stored, np.float32).reshape(-1, 3), counts.cumsum()[:-1])
    cubes = _Cubes(points, float(np.median(depths[depths > 0])) / CUBES, most)
    seen_by, rows, values = np.zeros(frames, np.int64), bytearray(), bytearray()
    for b, geometry in kept or read():
        others = cubes.frames_before(geometry, b)
        candidates = np.concatenate([points[0][:0], *(points[a] for a in others)])
        owner = np.repeat(np.arange(len(others)), counts[others])
        seen = np.bincount(owner[visible(candidates, geometry)], minlength=len(others))
        some = np.flatnonzero(seen)
        seen_by[b] = len(some)
        rows += others[some].astype(np.int32).tobytes()
        values += (seen[some] / counts[others[some]]).astype(np.float32).tobytes()
    starts = np.concatenate([[0], seen_by.cumsum()])
    columns = csc_array((np.frombuffer(values, np.float32), np.frombuffer(rows, np.int32), starts), shares.shape)
    return csr_array(columns)


class _Cubes:
    """The frames that have a point in each cube of space.

    Within a cube they are in a random order, the same in all cubes. A frame is compared with its neighbours in that
    order: every frame with others, and nearly always both with each other.
    """

    def __init__(self, points: Sequence[Float32[ndarray, "_ 3"]], size: float, most: int) -> None:
        self.most, self.frames = most, len(points)
        self.frame_at = np.random.default_rng(0).permutation(self.frames)
        self.place_of = np.argsort(self.frame_at)
        occupied = [np.unique(np.floor(each.astype(np.float64) / size), axis=0) for each in points]
        cubes, cube = np.unique(np.concatenate(occupied), axis=0, return_inverse=True)
        places = np.repeat(self.place_of, [len(each) for each in occupied])
        self.keys = np.sort(cube.ravel() * self.frames + places)  # cube by cube, in the random order
        self.start = np.searchsorted(self.keys, np.arange(len(cubes) + 1) * self.frames)
        self.tree = KDTree(np.asarray(cubes, np.float64) * size + size / 2)
        self.radius = np.sqrt(3) / 2 * size * ROUNDING

    def frames_before(self, geometry: FrameGeometry, number: int) -> Int[ndarray, " k"]:
        """Frames with points in cubes that a frame may see, as many as it may be compared with, the nearer ones first.

        Nearer is what is not behind the farthest surface that it sees.
        """
        found, own = np.zeros(self.frames, np.int8), int(self.place_of[number])
        for nearness, reach in enumerate((REACH, 1), 1):
            depth = hidden_beyond(reach * geometry.depth.max(keepdims=True)).item()
            found[self._places(self._before(geometry, depth), own)] = nearness
        places = np.flatnonzero(found)
        if len(places) > self.most:
            places = places[np.lexsort((np.abs(places - own), -found[places]))[: self.most]]
        return np.sort(self.frame_at[places])

    def _places(self, cubes: Int[ndarray, " cubes"], own: int) -> Int[ndarray, " k"]:
        """Of the frames in cubes, in each of them those nearest to one's own place in the order."""
        start, end = self.start[cubes], self.start[cubes + 1]
        middle = np.searchsorted(self.keys, cubes * self.frames + own)
        first = np.clip(middle - self.most // 2, start, np.maximum(start, end - self.most))
        lengths = np.minimum(end - first, self.most)
        entries = np.repeat(first - (lengths.cumsum() - lengths), lengths) + np.arange(lengths.sum())
        return self.keys[entries] % self.frames

    def _before(self, geometry: FrameGeometry, depth: float) -> Int[ndarray, " cubes"]:
        """Cubes that reach into the pyramid that a camera can see up to a depth."""
        camera = geometry.camera
        left, top = camera.cx / camera.fx, camera.cy / camera.fy
        right, bottom = camera.width / camera.fx - left, camera.height / camera.fy - top
        corner = depth * np.sqrt(1 + max(left**2, right**2) + max(top**2, bottom**2))
        centre = geometry.world_from_camera[:3, 3]
        near = np.array(self.tree.query_ball_point(centre, corner + self.radius), np.int64)
        x, y, z = transform(invert(geometry.world_from_camera), self.tree.data[near]).T
        inside = (z >= -self.radius) & (z <= depth + self.radius)
        for across, edge in ((x, left), (-x, right), (y, top), (-y, bottom)):
            inside &= across + edge * z >= -self.radius * np.hypot(1, edge)  # the distance to a side of the pyramid
        return near[inside]


def draw_frames(
    overlap: csr_array, usable: Int[ndarray, " k"], rng: np.random.Generator, count: int
) -> Int[ndarray, " drawn"]:
    """A random one of the usable frames, and others by their overlap with it."""
    seed = rng.choice(usable)
    shared = (overlap[[seed]].toarray()[0, usable] + overlap[:, [seed]].toarray()[usable, 0]) / 2
    shared = np.where((shared >= MIN_OVERLAP) & (usable != seed), shared, 0)
    others = min(count - 1, int((shared > 0).sum()))
    drawn = rng.choice(usable, others, replace=False, p=shared / shared.sum()) if others else []
    return np.concatenate([[seed], drawn]).astype(np.int64)
