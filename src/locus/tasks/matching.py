"""Which patches of two images show the same spot: the paper's rule, mutual nearest neighbours, finer than a patch."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.rows import Rows
from locus.scenes.patches import patch_centres

STUCK = 3.0  # patches: a match this close to its own image position may come from the position, not from what is seen
SHORTLIST = 0.1  # share of patches that a coarser scale leaves to the next finer one,
FEWEST = 9  # but at least these: a patch and those around it
EQUAL = 1e-5  # similarities that differ by no more than this are the same: the feature tells nothing
TILE = 2048  # rows of similarities held at once
# How far a right match may lie off its epipolar line:
EPIPOLAR = 0.25  # of a patch,
KEYPOINT = 1.5  # or pixels, of a keypoint in an image whose shorter side is 480 pixels


@dataclass(frozen=True)
class Rule:
    """Which pairs of patches count as matches."""

    mutual: bool = True
    """Only pairs of which each is the other's nearest."""
    min_score: float = -1.0
    """The cosine of a pair's features must be above it."""
    continuity: float | None = None
    """Patches that the matches of a patch and of its 8 neighbours may lie apart on average, A to B and B to A."""
    top: int | None = None
    """Only this many, the best by score."""
    refine: bool = True
    """Place matches to a fraction of a patch, by the similarity of the patches around them."""


# Score, two conditions on continuity, top 100 (paper, "Relative pose estimation"). The paper leaves the conditions to a
# supplement; these are those of the authors' later code, whose tolerance is ours: docs/matching.md.
PAPER = Rule(mutual=False, min_score=0.7, continuity=5.0, top=100, refine=False)


@dataclass(frozen=True, eq=False)
class Matches(Rows):
    """Pairs of spots in two images, the best score first."""

    pixels_a: Float[ndarray, "n 2"]
    """(x, y) in image A: centres of patches, or finer if refined."""
    pixels_b: Float[ndarray, "n 2"]
    """(x, y) in image B."""
    scores: Float[ndarray, " n"]
    """Cosines of patches; probabilities of keypoints."""
    patches_a: Int[ndarray, " n"]
    """Row-major in the grid; of keypoints, each pixel is a patch."""
    patches_b: Int[ndarray, " n"]
    size_a: tuple[int, int]
    """(width, height) in pixels."""
    size_b: tuple[int, int]
    grid_a: tuple[int, int]
    """(rows, columns) of patches."""
    grid_b: tuple[int, int]
    of_keypoints: bool = False
    """Whether they are between keypoints and not patches."""

    @property
    def tolerance(self) -> float:
        """Pixels of B that a right match may lie off its epipolar line."""
        if self.of_keypoints:
            return KEYPOINT * min(self.size_b) / 480
        return EPIPOLAR * float(np.sqrt(np.prod(self.size_b) / np.prod(self.grid_b)))

    @property
    def stuck_mask(self) -> Bool[ndarray, " n"]:
        """Which matches sit at (nearly) the same position in both images, measured in B's grid."""
        return stuck_mask(self.pixels_a / self.size_a, self.pixels_b / self.size_b, self.grid_b)

    @property
    def stuck(self) -> float:
        """The share of stuck matches; NaN without matches.

        Features that know their position in the image give such matches, and so does a camera that hardly moved.
        """
        return float(self.stuck_mask.mean()) if len(self) else float("nan")


def stuck_mask(at_a: Float[ndarray, "n 2"], at_b: Float[ndarray, "n 2"], grid: tuple[int, int]) -> Bool[ndarray, " n"]:
    """Which matches lie within `STUCK` patches (Euclidean distance) of their own image position.

    Positions are (x, y) from 0 to 1 in either image; the distance is measured in a grid of (rows, columns) patches.
    """
    rows, columns = grid
    return np.linalg.norm((at_b - at_a) * [columns, rows], axis=1) <= STUCK


def matched_pixels(
    pixels_a: Float[ndarray, "n 2"],
    pixels_b: Float[ndarray, "n 2"],
    scores: Float[ndarray, " n"],
    size_a: tuple[int, int],
    size_b: tuple[int, int],
) -> Matches:
    """Matches between keypoints at these pixels of images of these (width, height)."""
    order = np.argsort(-scores, kind="stable")
    pixels_a, pixels_b = pixels_a[order].astype(np.float64), pixels_b[order].astype(np.float64)
    cells = [
        (pixels.astype(int).clip(0, np.array(size) - 1) * [1, size[0]]).sum(axis=1)
        for pixels, size in ((pixels_a, size_a), (pixels_b, size_b))
    ]
    return Matches(pixels_a, pixels_b, scores[order], *cells, size_a, size_b, size_a[::-1], size_b[::-1], True)


@torch.no_grad()
def match(
    features_a: Float[Tensor, "scales_a rows_a columns_a c_a"],
    features_b: Float[Tensor, "scales_b rows_b columns_b c_b"],
    size_a: tuple[int, int],
    size_b: tuple[int, int],
    rule: Rule = Rule(),  # noqa: B008  frozen
) -> Matches:
    """The matches of two images.

    With several scales, a patch of B is only looked at for a patch of A if it is among the most similar ones at every
    coarser scale; the finest scale decides.

    Args:
        features_a: Unit-length features of image A, the scale of the smallest radius first.
        features_b: Of image B.
        size_a: (width, height) of image A, in the pixels that the matches are wanted in.
        size_b: Of image B.
        rule: Which pairs count.
    """
    if features_a.shape[0] != features_b.shape[0] or features_a.shape[-1] != features_b.shape[-1]:
        raise LocusError(
            f"features of {features_a.shape[0]} scales and length {features_a.shape[-1]} cannot be matched with "
            f"{features_b.shape[0]} scales and length {features_b.shape[-1]}; take both from one model"
        )
    features_a, features_b = features_a.detach().float().cpu(), features_b.detach().float().cpu()
    grid_a, grid_b = (features_a.shape[1], features_a.shape[2]), (features_b.shape[1], features_b.shape[2])
    rows_a, rows_b = features_a.flatten(1, 2), features_b.flatten(1, 2)
    b_of_a, scores = nearest(rows_a, rows_b)
    a_of_b, _ = nearest(rows_b, rows_a)
    patches_a = np.arange(len(b_of_a))
    kept = scores > rule.min_score
    if rule.mutual:
        kept &= a_of_b[b_of_a] == patches_a
    if rule.continuity is not None:
        kept &= discontinuity(b_of_a, grid_a, grid_b) < rule.continuity
        kept &= discontinuity(a_of_b, grid_b, grid_a)[b_of_a] < rule.continuity
    kept = np.flatnonzero(kept)
    kept = kept[np.argsort(-scores[kept], kind="stable")][: rule.top]
    partners = b_of_a[kept]
    pixels_a = patch_centres(grid_a, *size_a).reshape(-1, 2)[kept]
    pixels_b = patch_centres(grid_b, *size_b).reshape(-1, 2)[partners]
    if rule.refine:
        # The centre in A fits a peak in B, and the centre in B a peak in A. To first order the two midpoints fit each
        # other as well, with half of either peak's error.
        pixels_a = (pixels_a + refined(rows_b[0, partners], features_a[0], kept, size_a)) / 2
        pixels_b = (pixels_b + refined(rows_a[0, kept], features_b[0], partners, size_b)) / 2
    return Matches(pixels_a, pixels_b, scores[kept], kept, partners, size_a, size_b, grid_a, grid_b)


def nearest(
    queries: Float[Tensor, "scales n c"], keys: Float[Tensor, "scales m c"]
) -> tuple[Int[ndarray, " n"], Float[ndarray, " n"]]:
    """For each query its most similar key, and the similarity (cosine); -inf where all keys are equally similar.

    Scales from the finest to the coarsest, each narrowing the choice for the next finer one. A query's features may be
    a patch's and the keys a map's landmarks.
    """
    count = keys.shape[1]
    if count == 0:
        raise LocusError("there is nothing to match with: no keys")
    found, best = [], []
    for tile in queries.split(TILE, dim=1):
        similarity = tile[0] @ keys[0].T
        told_apart = similarity.amax(dim=1) - similarity.amin(dim=1) > EQUAL
        left_out, left = torch.zeros((1, 1), dtype=torch.bool), count
        for scale in reversed(range(1, len(keys))):
            coarser = (tile[scale] @ keys[scale].T).masked_fill_(left_out, -torch.inf)
            left = min(left, max(FEWEST, round(SHORTLIST * left)))
            left_out = coarser < coarser.topk(left, dim=1).values[:, -1:]
        if len(keys) > 1:
            similarity.masked_fill_(left_out, -torch.inf)
        score, index = similarity.max(dim=1)
        found.append(index)
        best.append(torch.where(told_apart | (count == 1), score, -torch.inf))
    return torch.cat(found).numpy(), torch.cat(best).double().numpy()


def discontinuity(
    targets: Int[ndarray, " n"], grid: tuple[int, int], target_grid: tuple[int, int]
) -> Float[ndarray, " n"]:
    """The mean distance, in patches, between a patch's match and those of its (up to) 8 neighbours."""
    places = np.stack(np.unravel_index(targets, target_grid), axis=-1).reshape(*grid, 2).astype(np.float64)
    padded = np.pad(places, ((1, 1), (1, 1), (0, 0)), constant_values=np.nan)
    rows, columns = grid
    around = [(down, right) for down in range(3) for right in range(3) if (down, right) != (1, 1)]
    neighbours = np.stack([padded[down : down + rows, right : right + columns] for down, right in around])
    distances = np.linalg.norm(neighbours - places, axis=-1)
    present = np.isfinite(distances)
    total = np.where(present, distances, 0).sum(axis=0)
    return np.divide(total, present.sum(axis=0), out=np.zeros(grid), where=present.any(axis=0)).ravel()


def refined(
    queries: Float[Tensor, "n c"],
    features: Float[Tensor, "rows columns c"],
    patches: Int[ndarray, " n"],
    size: tuple[int, int],
) -> Float[ndarray, "n 2"]:
    """Where in an image, in pixels, each query is most similar to the features, near the patch it was matched with.

    Along each axis, the top of the parabola through the similarity at the patch and its two neighbours; a patch at the
    image's edge stays where it is along that axis.
    """
    rows, columns = features.shape[:2]
    row, column = np.unravel_index(patches, (rows, columns))
    centres = patch_centres((rows, columns), *size).reshape(-1, 2)[patches]
    offsets = np.zeros((len(patches), 2))
    for axis, (down, right, place, count) in enumerate(((0, 1, column, columns), (1, 0, row, rows))):
        inside = np.flatnonzero((place > 0) & (place < count - 1))
        similarity = [
            (queries[inside] * features[row[inside] + step * down, column[inside] + step * right]).sum(dim=-1).double()
            for step in (-1, 0, 1)
        ]
        before, here, after = (values.numpy() for values in similarity)
        curvature = 2 * here - before - after
        peak = (here >= before) & (here >= after) & (curvature > EQUAL)  # a peak: its top is within half a patch
        offsets[inside[peak], axis] = (after - before)[peak] / (2 * curvature[peak])
    return centres + offsets * np.array(size) / (columns, rows)
