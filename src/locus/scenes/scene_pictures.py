"""Pictures of scenes: depth as colour, the overlap of frames, a plan from above, one frame projected into another."""

import cv2
import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray
from PIL import Image, ImageDraw

from locus.geometry import invert, transform, upwards
from locus.pages.pictures import Picture, ramp, resized
from locus.scenes.scene import Frame
from locus.scenes.visibility import FrameGeometry, visible

PAPER = 248  # the grey of a picture's empty parts


def depth_picture(depth: Float32[ndarray, "h w"], low: float, high: float) -> Picture:
    """Near is bright; unknown is paper-grey."""
    picture = ramp(high - depth, 0.0, high - low)
    return np.where(depth[..., None] > 0, picture, np.uint8(PAPER))


def overlap_picture(overlap: Float32[ndarray, "f f"], width: int = 480) -> Picture:
    """The overlap matrix, row a, column b."""
    picture = ramp(overlap, 0.0, 1.0)
    nearest = cv2.INTER_NEAREST if len(overlap) < width else cv2.INTER_AREA
    return cv2.resize(np.ascontiguousarray(picture), (width, width), interpolation=nearest)


def plan_picture(
    points: Float[ndarray, "n 3"], poses: Float[ndarray, "f 4 4"], width: int = 480
) -> tuple[Picture, float]:
    """Seen points and cameras from above, and the metres across it. Up is where the images' tops point on average."""
    up = upwards(poses)
    right = np.cross(up, [0.0, 1.0, 0.0] if abs(up[1]) < 0.9 else [1.0, 0.0, 0.0])
    right = right / np.linalg.norm(right)
    axes = np.stack([right, np.cross(up, right)])  # the plan's x and y, seen from above
    spots, cameras = points @ axes.T, poses[:, :3, 3] @ axes.T
    corners = np.concatenate([cameras, np.percentile(spots, (1, 99), axis=0) if len(spots) else cameras])
    low, high = corners.min(axis=0) - 0.3, corners.max(axis=0) + 0.3
    scale = width / max((high - low).max(), 1e-6)
    counts = np.zeros((width, width))
    x, y = ((spots - low) * scale).astype(int).T
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < width)
    np.add.at(counts, (width - 1 - y[inside], x[inside]), 1)
    grey = PAPER * (1 - 0.75 * np.minimum(cv2.GaussianBlur(counts, (0, 0), 1.0) / (np.mean(counts) * 12 + 1e-9), 1))
    canvas = Image.fromarray(np.repeat(grey.astype(np.uint8)[..., None], 3, axis=-1))
    draw = ImageDraw.Draw(canvas)
    heading = poses[:, :3, 2] @ axes.T
    path = [((cx - low[0]) * scale, width - 1 - (cy - low[1]) * scale) for cx, cy in cameras]
    if len(path) > 1:
        draw.line(path, fill=(220, 170, 120), width=1)
    for (px, py), (hx, hy) in zip(path, heading, strict=True):
        draw.line([(px, py), (px + 12 * hx, py - 12 * hy)], fill=(200, 60, 20), width=1)
        draw.ellipse([px - 2, py - 2, px + 2, py + 2], fill=(200, 60, 20))
    return np.asarray(canvas), width / scale


def projected_picture(a: Frame, b: Frame, width: int) -> Picture:
    """Frame a's pixels where depth and poses put them in frame b, but for those hidden there: the same picture as b."""
    step = max(1, a.camera.width // (2 * width))
    depth = a.depth[::step, ::step]
    pixels, colour = a.camera.pixel_grid()[::step, ::step], a.image[::step, ::step]
    known = depth > 0
    points = transform(a.world_from_camera, a.camera.unproject(pixels[known], depth[known])).astype(np.float32)
    seen = visible(points, FrameGeometry(points, b.depth, b.camera, b.world_from_camera))
    small = b.camera.resized(width, resized(b.image, width).shape[0])
    landing, z = small.project(transform(invert(b.world_from_camera), points))
    order = seen[np.argsort(-z[seen])]  # far ones first, so that near ones cover them
    picture = np.full((small.height, small.width, 3), PAPER, np.uint8)
    for right, down in ((1, 1), (0, 1), (1, 0), (0, 0)):  # a pixel covers a little more than a point
        x, y = (landing[order] + [right, down]).astype(int).clip(max=[small.width - 1, small.height - 1]).T
        picture[y, x] = colour[known][order]
    return picture
