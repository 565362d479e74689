"""Where in the world the patches and pixels of an image lie."""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from locus.errors import LocusError
from locus.geometry import Camera, transform
from locus.scenes.scene import Frame

SAMPLES = 12  # at most this many pixels across a patch are looked at
COVERAGE = 0.5  # a patch with less known depth than this has no point
AGREEMENT = 0.85  # nor has one where more than the rest of its pixels lie off the surface at its centre,
TOLERANCE = 0.03  # by more than this share of their depth: it straddles a depth edge


def patch_points(frame: Frame, grid: tuple[int, int]) -> tuple[Float[ndarray, "h w 3"], Bool[ndarray, "h w"]]:
    """The world point at the centre of each patch of a (rows, columns) grid, and where there is one; NaN elsewhere.

    The depth is that of the plane which most of the patch's pixels lie on, so single pixels do not matter and a slanted
    floor is met where the ray through the patch's centre meets it.
    """
    points_camera, valid = patch_points_camera(frame.depth, frame.camera, grid)
    return transform(frame.world_from_camera, points_camera), valid


def patch_points_camera(
    depth: Float[ndarray, "height width"], camera: Camera, grid: tuple[int, int]
) -> tuple[Float[ndarray, "h w 3"], Bool[ndarray, "h w"]]:
    """The same in the camera's frame."""
    rows, columns = grid
    if rows < 1 or columns < 1 or rows > depth.shape[0] or columns > depth.shape[1]:
        raise LocusError(
            f"a grid of {rows}×{columns} patches does not fit an image of {depth.shape[0]} rows and "
            f"{depth.shape[1]} columns"
        )
    cells, known, x, y = _inverse_depths(depth, grid)
    # The inverse depth of a plane is affine in the pixel, so a patch of a plane is fitted by three numbers. Medians
    # find them in spite of stray pixels: of the slopes from one half of the patch to the other, and of what is left.
    slope_x = _median_slope(cells, known, x[None, :, None, :])
    slope_y = _median_slope(cells.swapaxes(2, 3), known.swapaxes(2, 3), y[:, None, None, :])
    flat = cells - slope_x[..., None, None] * x[None, :, None, :] - slope_y[..., None, None] * y[:, None, :, None]
    centre = np.where(np.isfinite(slope_x + slope_y), _median(flat, known), np.nan)
    # |z - plane| / z is |1 - (1/z) / (1/plane)|, to first order the same as the relative error of the inverse.
    agrees = known & (np.abs(flat - centre[..., None, None]) <= TOLERANCE * cells)
    count, agreeing = known.sum(axis=(2, 3)), agrees.sum(axis=(2, 3))
    valid = (count >= COVERAGE * cells[0, 0].size) & (agreeing >= AGREEMENT * count) & (centre > 0)
    z = 1 / np.where(valid, centre, np.nan)
    return camera.unproject(patch_centres(grid, camera.width, camera.height), z), valid


def patch_centres(grid: tuple[int, int], width: int, height: int) -> Float[ndarray, "h w 2"]:
    """The (x, y) in an image's pixels of the centre of each patch of a (rows, columns) grid that spans it."""
    rows, columns = grid
    x, y = (np.arange(columns) + 0.5) / columns * width, (np.arange(rows) + 0.5) / rows * height
    return np.stack(np.meshgrid(x, y), axis=-1)


def points_at(
    depth: Float[ndarray, "height width"], camera: Camera, pixels: Float[ndarray, "n 2"]
) -> Float[ndarray, "n 3"]:
    """The points in the camera's frame that pixels show; NaN where the depth is not known."""
    x, y = pixels.astype(int).clip(0, [camera.width - 1, camera.height - 1]).T
    z = depth[y, x].astype(np.float64)
    return camera.unproject(pixels, np.where(z > 0, z, np.nan))


def _inverse_depths(
    depth: Float[ndarray, "height width"], grid: tuple[int, int]
) -> tuple[Float[ndarray, "h w a b"], Bool[ndarray, "h w a b"], Float[ndarray, "w b"], Float[ndarray, "h a"]]:
    """Inverse depth at pixels spread evenly over each patch, where it is known, and their x and y from its centre."""
    axes = []
    for size, patches in zip(depth.shape, grid, strict=True):
        samples = min(SAMPLES, size // patches)
        pixels = ((np.arange(patches * samples) + 0.5) * size / (patches * samples)).astype(int)
        centres = (np.arange(patches) + 0.5) * size / patches
        axes.append((pixels, (pixels + 0.5).reshape(patches, samples) - centres[:, None]))
    (rows, y), (columns, x) = axes
    cells = depth[np.ix_(rows, columns)].astype(np.float64)
    cells = cells.reshape(*y.shape, *x.shape).transpose(0, 2, 1, 3)
    known = cells > 0
    return np.divide(1.0, cells, out=np.zeros_like(cells), where=known), known, x, y


def _median_slope(
    values: Float[ndarray, "h w a b"], known: Bool[ndarray, "h w a b"], place: Float[ndarray, "#h #w 1 b"]
) -> Float[ndarray, "h w"]:
    """The median slope along the last axis, between samples half a patch apart; 0 where a patch has but one."""
    half = values.shape[-1] // 2
    if half == 0:
        return np.zeros(values.shape[:2])
    slopes = (values[..., -half:] - values[..., :half]) / (place[..., -half:] - place[..., :half])
    return _median(slopes, known[..., -half:] & known[..., :half])


def _median(values: Float[ndarray, "h w a b"], known: Bool[ndarray, "h w a b"]) -> Float[ndarray, "h w"]:
    """The median of the known values of each patch; NaN where there are none."""
    grid = values.shape[:2]
    ordered = np.sort(np.where(known, values, np.inf).reshape(*grid, -1), axis=-1)
    count = known.reshape(*grid, -1).sum(axis=-1)
    low = np.take_along_axis(ordered, np.maximum(count - 1, 0)[..., None] // 2, axis=-1)[..., 0]
    high = np.take_along_axis(ordered, (count // 2).clip(max=ordered.shape[-1] - 1)[..., None], axis=-1)[..., 0]
    return np.where(count > 0, (low + high) / 2, np.nan)
