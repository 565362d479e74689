"""Building blocks of procedural textures. Everything repeats without a seam."""

import colorsys
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Float32, UInt8
from scipy import fft

Colour = tuple[float, float, float]
"""sRGB, each from 0 to 1."""


def hsv(hue: float, saturation: float, value: float) -> Colour:
    return colorsys.hsv_to_rgb(hue % 1, float(np.clip(saturation, 0, 1)), float(np.clip(value, 0, 1)))


def any_hue(rng: np.random.Generator) -> float:
    """A hue as homes have them: mostly warm, then blues and greens, seldom violet."""
    pick = rng.random()
    if pick < 0.5:
        return float(rng.normal(0.085, 0.035) % 1)
    if pick < 0.9:
        return rng.uniform(0.22, 0.65)
    return rng.random()


def shaded(colour: Colour, factor: float) -> Colour:
    """A lighter or darker colour."""
    r, g, b = np.clip(np.array(colour) * factor, 0, 1)
    return float(r), float(g), float(b)


def near(rng: np.random.Generator, colour: Colour, spread: float = 0.05) -> Colour:
    """A colour a little different from the given one."""
    r, g, b = np.clip(np.array(colour) * np.exp(rng.normal(0, spread)) + rng.normal(0, spread / 3, 3), 0, 1)
    return float(r), float(g), float(b)


def noise(
    rng: np.random.Generator,
    size: int,
    slope: float = 1.0,
    stretch: tuple[float, float] = (1, 1),
    coarsest: float = 1.0,
    finest: float = 1e9,
) -> Float32[np.ndarray, "s s"]:
    """Noise of unit variance whose amplitude falls with frequency to the power `slope`, between two frequencies in
    cycles per tile, drawn out along x and y by `stretch`."""
    spectrum = fft.rfft2(rng.standard_normal((size, size), np.float32))
    spectrum *= _gain(size, slope, stretch, coarsest, finest)
    field = fft.irfft2(spectrum, s=(size, size), overwrite_x=True)
    return field / max(float(field.std()), 1e-6)


@lru_cache(maxsize=64)
def _gain(
    size: int, slope: float, stretch: tuple[float, float], coarsest: float, finest: float
) -> Float32[np.ndarray, "s half"]:
    """How much of each frequency `noise` keeps."""
    fy = fft.fftfreq(size, 1 / size)[:, None] * stretch[1]
    fx = fft.rfftfreq(size, 1 / size)[None] * stretch[0]
    frequency = np.hypot(fx, fy)
    frequency[0, 0] = 1
    gain = frequency**-slope * (frequency >= coarsest) * (frequency <= finest)
    gain[0, 0] = 0
    return gain.astype(np.float32)


def mix(a: Colour, b: Colour, share: Float[np.ndarray, "s t"]) -> Float32[np.ndarray, "s t 3"]:
    """From colour a (share 0) to colour b (share 1)."""
    start, end = np.array(a, np.float32), np.array(b, np.float32)
    return start + (end - start) * np.clip(share, 0, 1).astype(np.float32)[..., None]


def painted(colour: Colour, lightness: Float[np.ndarray, "s t"]) -> Float32[np.ndarray, "s t 3"]:
    """A colour made lighter and darker: 0 leaves it, 0.1 makes it a tenth brighter."""
    return np.array(colour, np.float32) * (1 + lightness).astype(np.float32)[..., None]


def stored(picture: Float[np.ndarray, "s t 3"]) -> UInt8[np.ndarray, "s t 3"]:
    return (np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8)


def grid(size: int) -> tuple[Float32[np.ndarray, "s s"], Float32[np.ndarray, "s s"]]:
    """x to the right and y downwards, from 0 to 1."""
    y, x = np.mgrid[0:size, 0:size].astype(np.float32) / size
    return x, y
