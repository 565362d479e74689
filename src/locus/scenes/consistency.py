"""Do poses, depth and intrinsics agree? And if not, which of the usual mistakes would explain it?

Pixels of frame A are carried into frame B by A's depth and both poses. There they must land on the surface that B sees:
at B's depth they *agree*; *behind* it they are hidden, which is fine; but a point that lands well *in front* of it
would hang in the air that B looks through. A wrong convention makes few points agree and many hang in the air.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from jaxtyping import Bool, Float32, Int
from numpy import ndarray

from locus.geometry import Camera, invert
from locus.scenes.scene import CHOICES, Convention
from locus.scenes.visibility import FrameGeometry

PAIRS = 400
PIXELS = 200  # looked at in each frame
OFF_CENTRE = 0.1  # of the image's size, that a principal point may lie from its centre
CLOSE = 0.02  # of the depth: ranks conventions against each other
NEAR = 0.05  # of the depth: what sound data keep to, sensors being what they are
FAR_BETTER = 1.2  # a repair must make this many times as many points agree
SOUND = 0.85  # of the points that land on or before a surface, this share must lie on it
PLAUSIBLE = 0.7  # the same for a repair to be named at all: wrong conventions stay below a half
ENOUGH = 0.01  # of all points carried must agree under some convention, or nothing can be said
FEWEST_PIXELS = 50  # with known depth, for a frame to say anything
PARTNERS = 6  # frames that one frame is compared with, to see whether it is odd,
FEWEST_PARTNERS = 3  # of which so many must show at least
FEWEST_LANDED = 20  # of its pixels
KNOWN_SCALES = (1.0, 100.0, 256.0, 512.0, 1000.0, 4000.0, 5000.0, 6553.5, 10000.0)
COARSE_SCALES = np.geomspace(1e-4, 1e4, 73)  # steps of 1.29
FINE_STEPS = np.geomspace(0.8, 1.25, 31)  # around the best coarse scale, steps of 1.5 %


@dataclass(frozen=True)
class Agreement:
    """What became of the points carried from frames to others, as shares of all points carried."""

    agree: float
    before: float
    behind: float

    @property
    def consistency(self) -> float:
        """Of the points that land on or before a surface, the share on it; NaN if none lands."""
        landed = self.agree + self.before
        return self.agree / landed if landed else float("nan")


@dataclass(frozen=True)
class Diagnosis:
    """How consistent a scene is as read, and under the convention that explains it best."""

    as_read: Agreement
    repair: Convention | None
    """The convention to read it with instead; None where the one in use is as good as any."""
    repaired: Agreement | None
    undecided: tuple[str, ...]
    """Fields of the convention that these frames cannot tell: changed, as many points would agree."""
    points: int
    """How many were carried."""

    @property
    def conclusive(self) -> bool:
        most = max(self.as_read.agree, self.repaired.agree if self.repaired else 0.0)
        return most >= ENOUGH and not {"pose", "axes", "rotation"} <= set(self.undecided)

    @property
    def sound(self) -> bool:
        return self.conclusive and self.repair is None and self.as_read.consistency >= SOUND


def diagnose(geometries: Sequence[FrameGeometry], convention: Convention) -> Diagnosis:
    """Compare the frames as read by `convention` with every combination of the usual mistakes."""
    carried = Carried(geometries, convention)
    as_read = carried.agreement(convention, NEAR)
    best = _best_convention(carried, convention)
    repaired = carried.agreement(best, NEAR)
    close, close_repaired = (carried.agreement(c, CLOSE).consistency for c in (convention, best))
    undecided = _undecided(carried, best)
    # Not the best of many wrong ones; nor one that only makes more of the same land; nor one where the change could as
    # well be another.
    doubtful = set(undecided) & set(best.differences(convention))
    if repaired.consistency < PLAUSIBLE or close >= 0.95 * close_repaired or doubtful:
        best, undecided = convention, _undecided(carried, convention)
    points = len(carried.pairs) * PIXELS
    if best == convention:
        return Diagnosis(as_read, None, None, undecided, points)
    return Diagnosis(as_read, best, repaired, undecided, points)


def camera_doubt(camera: Camera) -> str:
    """Why intrinsics may be those of another image, in half a sentence; empty if nothing speaks for it."""
    off = abs(camera.cx / camera.width - 0.5), abs(camera.cy / camera.height - 0.5)
    if max(off) <= OFF_CENTRE:
        return ""
    return "the principal point is far off-centre: were images resized or cropped after the calibration?"


def consistency_of_frames(
    geometries: Sequence[FrameGeometry], overlap: Float32[ndarray, "f f"], convention: Convention
) -> Float32[ndarray, "f"]:
    """How consistent each frame is with those that see most of it, both ways; NaN where too little lands to say."""
    carried = Carried(geometries, convention)
    partners = min(PARTNERS, len(geometries) - 1)
    if partners < FEWEST_PARTNERS:
        return np.full(len(geometries), np.nan, np.float32)
    others = np.where(np.eye(len(geometries), dtype=bool), -1, overlap)
    a = np.repeat(np.arange(len(geometries)), partners)
    b = np.argsort(-others, axis=1)[:, :partners].ravel()
    carried.pairs = np.concatenate([np.stack([a, b], axis=-1), np.stack([b, a], axis=-1)])
    agree, before, _ = carried.landings(convention, NEAR)
    agree, before = (x.sum(axis=1).reshape(2, -1, partners).sum(axis=0) for x in (agree, before))
    enough = (agree + before >= FEWEST_LANDED).sum(axis=1) >= FEWEST_PARTNERS
    landed = (agree + before).sum(axis=1)
    return np.where(enough, agree.sum(axis=1) / np.maximum(landed, 1), np.nan).astype(np.float32)


def _best_convention(carried: "Carried", convention: Convention) -> Convention:
    """The simplest convention that explains the frames, `convention` itself unless another is far better."""
    thin = carried.thinned()
    coarse = [
        max((replace(turned, depth_scale=convention.depth_scale * s) for s in COARSE_SCALES), key=thin.support)
        for turned in _turned(convention)
    ]
    coarse.sort(key=thin.support, reverse=True)
    # The front-runners, and every convention with the scale as it is, at full precision.
    contenders = [_refined(carried, candidate, convention) for candidate in coarse[:4]] + list(_turned(convention))
    support = {candidate: carried.support(candidate) for candidate in contenders}
    best = max(support.values())
    if best < ENOUGH / 2 or FAR_BETTER * support[convention] > best:
        return convention
    good = [candidate for candidate in support if FAR_BETTER * support[candidate] > best]
    return min(good, key=lambda candidate: (len(candidate.differences(convention)), -support[candidate]))


def _undecided(carried: "Carried", convention: Convention) -> tuple[str, ...]:
    """The fields of which a single change, or another depth scale, would leave as many points agreeing."""
    support = carried.support(convention)
    if not support:
        return ()
    alternatives = [(n, replace(convention, **{n: v})) for n, values in CHOICES.items() for v in values]
    scales = (convention.depth_scale * factor for factor in (0.5, 0.7, 1.4, 2.0))
    alternatives += [("depth_scale", replace(convention, depth_scale=scale)) for scale in scales]
    matching = {n for n, other in alternatives if other != convention and carried.support(other) >= 0.9 * support}
    return tuple(name for name in (*CHOICES, "depth_scale") if name in matching)


def _turned(convention: Convention) -> Iterator[Convention]:
    """Every reading of the same numbers, the present one first; the depth's unit stays."""
    choices = [sorted(values, key=lambda v, f=field: v != getattr(convention, f)) for field, values in CHOICES.items()]
    for values in product(*choices):
        yield replace(convention, **dict(zip(CHOICES, values, strict=True)))


def _refined(carried: "Carried", candidate: Convention, convention: Convention) -> Convention:
    """The candidate with its depth scale found more exactly, and made a usual one where that fits as well."""
    options = [replace(candidate, depth_scale=candidate.depth_scale * step) for step in FINE_STEPS]
    support = [carried.support(option) for option in options]
    best = int(np.argmax(support))
    for scale in (convention.depth_scale, *KNOWN_SCALES):
        usual = replace(candidate, depth_scale=scale)
        if abs(scale / options[best].depth_scale - 1) < 0.15 and carried.support(usual) >= 0.9 * support[best]:
            return usual
    return replace(options[best], depth_scale=float(f"{options[best].depth_scale:.3g}"))


class Carried:
    """Pixels of frames, and the pairs of frames between which they are carried."""

    def __init__(self, geometries: Sequence[FrameGeometry], convention: Convention) -> None:
        random = np.random.default_rng(0)
        self.convention = convention
        height = max((g.depth.shape[0] for g in geometries), default=1)
        width = max((g.depth.shape[1] for g in geometries), default=1)
        self.depth = np.zeros((len(geometries), height, width), np.float32)
        self.pixels = np.zeros((len(geometries), PIXELS, 2), np.int32)
        for index, geometry in enumerate(geometries):
            self.depth[index, : geometry.depth.shape[0], : geometry.depth.shape[1]] = geometry.depth
            known = np.argwhere(geometry.depth > 0)[:, ::-1]
            if len(known) >= FEWEST_PIXELS:
                self.pixels[index] = known[random.integers(len(known), size=PIXELS)]
        self.sizes = np.array([g.depth.shape[::-1] for g in geometries], np.float32).reshape(-1, 2)
        cameras = [convention.camera(g.camera) for g in geometries]  # swapping twice gives back what was stored
        self.intrinsics = np.array([[c.fx, c.fy, c.cx, c.cy] for c in cameras], np.float32).reshape(-1, 4)
        poses = np.array([g.world_from_camera for g in geometries]).reshape(-1, 4, 4)
        self.stored_poses = convention.stored(poses)
        self.pairs = choose_pairs(len(geometries), random)

    def thinned(self) -> "Carried":
        """A quarter of the pixels in half of the pairs: enough to tell conventions apart."""
        thin = copy(self)
        thin.pixels, thin.pairs = self.pixels[:, : PIXELS // 4], self.pairs[::2]
        return thin

    def support(self, convention: Convention) -> float:
        """The share of all points that agree closely: what the right convention makes largest."""
        return self.agreement(convention, CLOSE).agree

    def agreement(self, convention: Convention, tolerance: float) -> Agreement:
        """What becomes of the points under a convention."""
        if not len(self.pairs):
            return Agreement(0.0, 0.0, 0.0)
        return Agreement(*(float(which.mean()) for which in self.landings(convention, tolerance)))

    def landings(
        self, convention: Convention, tolerance: float
    ) -> tuple[Bool[ndarray, "p n"], Bool[ndarray, "p n"], Bool[ndarray, "p n"]]:
        """Which points agree, hang in the air before a surface, or lie behind one."""
        a, b = self.pairs.T
        with np.errstate(over="ignore", invalid="ignore"):  # absurd conventions give absurd numbers
            z, surface = self._land(convention, a, b)
            landed = (z > 0) & (surface > 0)
            off = (z - surface) / np.where(landed, surface, 1.0)
        agree, before = landed & (np.abs(off) <= tolerance), landed & (off < -tolerance)
        return agree, before, landed & ~agree & ~before

    def _land(
        self, convention: Convention, a: Int[ndarray, "p"], b: Int[ndarray, "p"]
    ) -> tuple[Float32[ndarray, "p n"], Float32[ndarray, "p n"]]:
        """Depth of a's points in b, and of the surface that b sees where they land; 0 where they do not land."""
        poses = convention.world_from_camera(self.stored_poses)
        b_from_a = (invert(poses)[b] @ poses[a]).astype(np.float32)
        metres = np.float32(self.convention.depth_scale / convention.depth_scale)
        swapped = convention.intrinsics == "swapped"
        fx, fy, cx, cy = self.intrinsics[:, [1, 0, 3, 2] if swapped else [0, 1, 2, 3]].T[..., None]
        x, y = self.pixels[..., 0], self.pixels[..., 1]
        depth = self.depth[np.arange(len(self.depth))[:, None], y, x] * metres
        u, v = x.astype(np.float32) + 0.5, y.astype(np.float32) + 0.5
        points = np.stack([(u - cx) / fx * depth, (v - cy) / fy * depth, depth], axis=-1)
        carried = points[a] @ np.swapaxes(b_from_a[:, :3, :3], -1, -2) + b_from_a[:, None, :3, 3]
        z = carried[..., 2]
        safe = np.where(z > 0, z, 1.0)
        # Clipped so that far-off pixels fit an integer; -1 and beyond the image are outside either way.
        x = np.floor(carried[..., 0] / safe * fx[b] + cx[b]).clip(-1, 1e6).astype(np.int32)
        y = np.floor(carried[..., 1] / safe * fy[b] + cy[b]).clip(-1, 1e6).astype(np.int32)
        width, height = self.sizes[b, 0][:, None], self.sizes[b, 1][:, None]
        inside = (z > 0) & (x >= 0) & (x < width) & (y >= 0) & (y < height) & (depth[a] > 0)
        surface = self.depth[b[:, None], np.where(inside, y, 0), np.where(inside, x, 0)] * metres
        return z, np.where(inside, surface, np.float32(0))


def choose_pairs(frames: int, random: np.random.Generator) -> Int[ndarray, "p 2"]:
    """Pairs of frames, near and far in the sequence and at random, whatever the poses say: they may be wrong."""
    everything = np.array([(a, b) for a in range(min(frames, 25)) for b in range(frames) if a != b], int).reshape(-1, 2)
    if frames * (frames - 1) <= PAIRS:
        return everything
    gaps = [gap for gap in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if gap < frames]
    first = random.integers(frames, size=(len(gaps) + 3, PAIRS // (len(gaps) + 3)))
    step = np.array([*gaps, 0, 0, 0])[:, None] * random.choice([-1, 1], size=first.shape)
    step[-3:] = random.integers(1, frames, size=step[-3:].shape)
    return np.stack([first, (first + step) % frames], axis=-1).reshape(-1, 2)
