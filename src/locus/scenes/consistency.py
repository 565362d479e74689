"""Do poses, depth and intrinsics agree? And if not, which of the usual mistakes would explain it?

Pixels of frame A are carried into frame B by A's depth and both poses. There they must land on the surface that B sees:
at B's depth they *agree*; *behind* it they are hidden, which is fine; but a point that lands well *in front* of it
would hang in the air that B looks through. A wrong convention makes few points agree and many hang in the air.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from typing import get_args, get_type_hints

import numpy as np
from jaxtyping import Float32, Int
from numpy import ndarray

from locus.geometry import invert
from locus.scenes.scene import Convention
from locus.scenes.visibility import FrameGeometry

PAIRS = 400
PIXELS = 200  # looked at in each frame
CLOSE = 0.02  # of the depth: ranks conventions against each other
NEAR = 0.05  # of the depth: what sound data keep to, sensors being what they are
FAR_BETTER = 1.2  # a repair must make this many times as many points agree
SOUND = 0.85  # of the points that land on or before a surface, this share must lie on it
PLAUSIBLE = 0.7  # the same for a repair to be named at all: wrong conventions stay below a half
ENOUGH = 0.01  # of all points carried must agree under some convention, or nothing can be said
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
    per_frame: Float32[ndarray, "f"]
    """Consistency of each frame with the others, as read; NaN where nothing lands."""

    @property
    def conclusive(self) -> bool:
        return max(self.as_read.agree, self.repaired.agree if self.repaired else 0.0) >= ENOUGH

    @property
    def sound(self) -> bool:
        return self.conclusive and self.repair is None and self.as_read.consistency >= SOUND


def diagnose(geometries: Sequence[FrameGeometry], convention: Convention) -> Diagnosis:
    """Compare the frames as read by `convention` with every combination of the usual mistakes."""
    carried = Carried(geometries, convention)
    as_read, per_frame = carried.agreement(convention, NEAR)
    best = _best_convention(carried, convention)
    if best == convention:
        return Diagnosis(as_read, None, None, per_frame)
    repaired = carried.agreement(best, NEAR)[0]
    if repaired.consistency < PLAUSIBLE:  # the best of many wrong ones
        return Diagnosis(as_read, None, None, per_frame)
    return Diagnosis(as_read, best, repaired, per_frame)


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
    good = [candidate for candidate in support if support[candidate] >= 0.97 * best]
    chosen = min(good, key=lambda candidate: _changes(candidate, convention))
    if best >= ENOUGH / 2 and support[chosen] >= FAR_BETTER * support[convention]:
        return chosen
    return convention


def _turned(convention: Convention) -> Iterator[Convention]:
    """Every reading of the same numbers, the present one first; the depth's unit stays."""
    hints = get_type_hints(Convention)
    fields = ("pose", "axes", "rotation", "intrinsics")
    choices = [sorted(get_args(hints[field]), key=lambda v, f=field: v != getattr(convention, f)) for field in fields]
    for values in product(*choices):
        yield replace(convention, **dict(zip(fields, values, strict=True)))


def _changes(candidate: Convention, convention: Convention) -> int:
    fields = ("pose", "axes", "rotation", "intrinsics", "depth_scale")
    return sum(getattr(candidate, field) != getattr(convention, field) for field in fields)


def _refined(carried: "Carried", candidate: Convention, convention: Convention) -> Convention:
    """The candidate with its depth scale found more exactly, and made a usual one where that fits as well."""
    options = [replace(candidate, depth_scale=candidate.depth_scale * step) for step in FINE_STEPS]
    support = [carried.support(option) for option in options]
    best = int(np.argmax(support))
    for scale in (convention.depth_scale, *KNOWN_SCALES):
        usual = replace(candidate, depth_scale=scale)
        if abs(scale / options[best].depth_scale - 1) < 0.1 and carried.support(usual) >= 0.93 * support[best]:
            return usual
    return replace(options[best], depth_scale=float(f"{options[best].depth_scale:.3g}"))


class Carried:
    """Pixels of frames, and the pairs of frames between which they are carried."""

    def __init__(self, geometries: Sequence[FrameGeometry], convention: Convention, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.convention = convention
        height = max((g.depth.shape[0] for g in geometries), default=1)
        width = max((g.depth.shape[1] for g in geometries), default=1)
        self.depth = np.zeros((len(geometries), height, width), np.float32)
        self.pixels = np.zeros((len(geometries), PIXELS, 2), np.int32)
        for index, geometry in enumerate(geometries):
            self.depth[index, : geometry.depth.shape[0], : geometry.depth.shape[1]] = geometry.depth
            known = np.argwhere(geometry.depth > 0)[:, ::-1]
            if len(known):
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
        return self.agreement(convention, CLOSE)[0].agree

    def agreement(self, convention: Convention, tolerance: float) -> tuple[Agreement, Float32[ndarray, "f"]]:
        """What becomes of the points under a convention, and the consistency of each frame's own points."""
        if not len(self.pairs):
            return Agreement(0.0, 0.0, 0.0), np.full(len(self.depth), np.nan, np.float32)
        a, b = self.pairs.T
        z, surface = self._land(convention, a, b)
        landed = (z > 0) & (surface > 0)
        off = (z - surface) / np.where(landed, surface, 1.0)
        agree = landed & (np.abs(off) <= tolerance)
        before = landed & (off < -tolerance)
        result = Agreement(float(agree.mean()), float(before.mean()), float((landed & (off > tolerance)).mean()))
        frames = len(self.depth)
        good = np.bincount(a, agree.sum(axis=1), frames)
        bad = np.bincount(a, before.sum(axis=1), frames)
        with np.errstate(invalid="ignore"):
            return result, (good / (good + bad)).astype(np.float32)

    def _land(
        self, convention: Convention, a: Int[ndarray, "p"], b: Int[ndarray, "p"]
    ) -> tuple[Float32[ndarray, "p n"], Float32[ndarray, "p n"]]:
        """Depth of a's points in b, and of the surface that b sees where they land; 0 where they do not land."""
        poses = convention.world_from_camera(self.stored_poses)
        b_from_a = (invert(poses)[b] @ poses[a]).astype(np.float32)
        metres = np.float32(self.convention.depth_scale / convention.depth_scale)
        fx, fy, cx, cy = self._intrinsics(convention)
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

    def _intrinsics(self, convention: Convention) -> list[Float32[ndarray, "f 1"]]:
        order = (1, 0, 3, 2) if convention.intrinsics == "swapped" else (0, 1, 2, 3)
        return [self.intrinsics[:, i : i + 1] for i in order]


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
