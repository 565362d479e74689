"""Depth compressed by RVL, A. Wilson's "Fast lossless depth image compression" (2017), as RTAB-Map and ROS store it.

Pixels are runs of zeros and runs of others, in turn; of the others, differences to the one before. All are whole
numbers of varying length: three bits in each half of a byte, the fourth says that more follow. Halves fill words of 32
bits from the top.
"""

import numpy as np
from jaxtyping import Int64, UInt16
from numpy import ndarray

from locus.errors import LocusError

MOST_HALVES = 11  # of a byte, in one number: 33 bits


def decompress_rvl(data: bytes, pixels: int) -> UInt16[ndarray, "pixels"]:
    numbers = _numbers(data)
    depth = np.zeros(pixels, np.uint16)
    runs, at, pixel = [], 0, 0
    while pixel < pixels:
        if at + 2 > len(numbers):
            raise LocusError("its depth, compressed by RVL, is cut short")
        zeros, others = numbers[at : at + 2].tolist()
        first, at, pixel = at + 2, at + 2 + others, pixel + zeros + others
        if pixel > pixels or at > len(numbers):
            raise LocusError("its depth, compressed by RVL, is damaged or cut short")
        runs.append((pixel - others, pixel, first))
    differences = [numbers[first : first + end - start] for start, end, first in runs]
    folded = np.concatenate([np.empty(0, np.int64), *differences])
    values = np.cumsum((folded >> 1) ^ -(folded & 1)).astype(np.uint16)  # 0, -1, 1, -2, … are stored as 0, 1, 2, 3, …
    depth[np.concatenate([np.empty(0, np.int64), *(np.arange(start, end) for start, end, _ in runs)])] = values
    return depth


def _numbers(data: bytes) -> Int64[ndarray, "n"]:
    words = np.frombuffer(data[: len(data) // 4 * 4], "<u4")
    halves = ((words[:, None] >> np.arange(28, -1, -4, dtype=np.uint32)) & 15).reshape(-1).astype(np.int64)
    ends = np.flatnonzero(halves < 8) + 1
    starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    if not len(ends) or (ends - starts).max() > MOST_HALVES:
        raise LocusError("its depth, compressed by RVL, is damaged")
    place = np.arange(ends[-1]) - np.repeat(starts, ends - starts)
    return np.add.reduceat((halves[: ends[-1]] & 7) << (3 * place), starts)
