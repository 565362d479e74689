"""What a real camera makes of a view: exposure, white balance, tone, lens and noise; and a depth sensor's errors."""

import cv2
import numpy as np
from jaxtyping import Float32, UInt8

LONGEST_BLUR = 0.04
"""Of a picture's width: more would be thrown away."""


def photograph(
    radiance: Float32[np.ndarray, "h w 3"], rng: np.random.Generator, wrong: float = 1.0
) -> UInt8[np.ndarray, "h w 3"]:
    """An sRGB image, exposed and white-balanced automatically, each a little wrong as in real capture; `wrong` times
    as much as a good camera would be."""
    luminance = radiance @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    # Metered on what is not a bright window, or rooms would be black around it.
    metered = np.minimum(luminance, 6 * np.median(luminance) + 1e-3)
    middle = float(np.exp(np.log(metered + 1e-3).mean()))
    # Dark rooms are left a little dark.
    gain = 0.22 * (middle / 0.2) ** 0.1 / max(middle, 1e-3) * 2 ** (wrong * rng.normal(0, 0.25))
    exposed = radiance * np.float32(gain)
    exposed = _local(exposed, luminance / max(middle, 1e-3))
    colour = np.minimum(exposed, 1.0).reshape(-1, 3).mean(axis=0)
    balance = (colour.mean() / np.maximum(colour, 1e-3)) ** 0.5 * np.exp(wrong * rng.normal(0, 0.03, 3))
    exposed = exposed * balance.astype(np.float32)
    height, width = luminance.shape
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    squared = ((x / width - 0.5) ** 2 + (y / height - 0.5) ** 2) * 4
    exposed *= (1 - rng.uniform(0, 0.12) * squared)[..., None].astype(np.float32)
    exposed = cv2.GaussianBlur(exposed, (3, 3), rng.uniform(0.2, 0.55))
    grain = rng.standard_normal(exposed.shape, np.float32)
    level = np.float32(2 ** rng.uniform(-1, 1))
    exposed = exposed + grain * level * np.sqrt(np.maximum(exposed, 0) * 1.2e-4 + 1e-6)
    return _tone(np.maximum(exposed, 0))


def snapshot(radiance: Float32[np.ndarray, "h w 3"], rng: np.random.Generator) -> UInt8[np.ndarray, "h w 3"]:
    """A photograph by a cheap camera in a moving hand: blurred along a line, further from the right exposure and
    colour, and stored as JPEG."""
    width = radiance.shape[1]
    length = min(float(rng.exponential(0.008)), LONGEST_BLUR) * width
    half = int(np.ceil(length / 2)) + 1
    along = np.linspace(-length / 2, length / 2, 4 * half) if length > 1 else np.zeros(1)
    turn = rng.uniform(0, np.pi)
    kernel = np.zeros((2 * half + 1, 2 * half + 1), np.float32)
    rows, columns = np.rint(half + along * np.sin(turn)).astype(int), np.rint(half + along * np.cos(turn)).astype(int)
    np.add.at(kernel, (rows, columns), 1 / len(along))
    # What is much brighter than white stays white when it is blurred, but does not wash out all around it.
    image = photograph(cv2.filter2D(np.minimum(radiance, 8.0), -1, kernel), rng, wrong=2.5)
    _, stored = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(50, 96))])
    return np.ascontiguousarray(cv2.imdecode(stored, cv2.IMREAD_COLOR)[..., ::-1])  # ty: ignore[not-subscriptable]


def _local(exposed: Float32[np.ndarray, "h w 3"], relative: Float32[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w 3"]:
    """Lift dark regions and hold bright ones back, as the local tone mapping of a phone does."""
    size = relative.shape[1] / 12
    surround = cv2.GaussianBlur(np.log(np.clip(relative, 0.02, 12)), (0, 0), size)
    return exposed * np.exp(-0.3 * surround)[..., None]


def _tone(linear: Float32[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "h w 3"]:
    """Highlights roll off to white (Narkowicz' fit to the ACES curve), then sRGB."""
    x = linear * 0.9
    mapped = np.clip(x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14), 0, 1)
    encoded = np.where(mapped <= 0.0031308, 12.92 * mapped, 1.055 * np.maximum(mapped, 1e-8) ** (1 / 2.4) - 0.055)
    return (encoded * 255 + 0.5).astype(np.uint8)


def structured_light(depth: Float32[np.ndarray, "h w"], rng: np.random.Generator) -> Float32[np.ndarray, "h w"]:
    """Depth as a structured-light sensor gives it: noise and steps that grow with the distance squared, holes at
    edges, beyond its range, and here and there. (Error of about 1.5 mm at 1 m, Khoshelham and Elberink 2012.)"""
    height, width = depth.shape
    wobble = cv2.resize(rng.normal(size=(height // 4 + 1, width // 4 + 1)).astype(np.float32), (width, height))
    noisy = depth + (0.0014 * depth**2) * (0.7 * rng.normal(size=depth.shape).astype(np.float32) + wobble)
    step = 0.002 * np.maximum(depth, 0.3) ** 2
    noisy = np.round(noisy / step) * step
    low, high = cv2.erode(depth, np.ones((3, 3))), cv2.dilate(depth, np.ones((3, 3)))
    edge = (high - low > 0.06 * depth) & (rng.random(depth.shape) < 0.7)
    patches = cv2.GaussianBlur(rng.normal(size=depth.shape).astype(np.float32), (0, 0), max(width / 80, 1.0))
    lost = patches > 2.6 * patches.std()
    unseen = (depth < 0.4) | (depth > 8) | edge | lost
    return np.where(unseen, 0, noisy).astype(np.float32)
