"""Frames of a video, by their number."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import cv2
import numpy as np
from jaxtyping import Float, UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.geometry import Camera
from locus.opening import UNLIMITED, admitted, opened
from locus.scenes.lens import Lens
from locus.scenes.reading import MAX_PIXELS, camera_from_four
from locus.scenes.source import Source

VIDEO_SUFFIXES = frozenset(".avi .m4v .mkv .mov .mp4 .mpeg .mpg .ogv .webm .wmv".split())  # noqa: SIM905

GAP = 2**20  # bytes


class Video:
    """Every so-many-th frame by its number, fast where they are asked for nearly in order, also by several threads."""

    KEPT = 16  # frames that were passed on the way to a later one, for the thread that is about to ask for them

    def __init__(self, path: Path, every: int = 1) -> None:
        self.path = path
        self.every = every
        self._lock = Lock()
        self._capture: cv2.VideoCapture | None = None
        self._next = 0
        self._passed: dict[int, UInt8[ndarray, "h w 3"]] = {}

    @cached_property
    def size(self) -> tuple[int, int]:
        """(width, height), from the file's header."""
        capture = self._opened()
        width, height = (int(capture.get(side)) for side in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        capture.release()
        if width * height > MAX_PIXELS:
            raise LocusError(f"{self.path} claims frames of more than {MAX_PIXELS // 10**6} million pixels; refused")
        if width < 1 or height < 1:
            raise LocusError(f"{self.path} is a video without a frame that can be read")
        return width, height

    @cached_property
    def rate(self) -> float:
        """Frames per second, from the file's header."""
        capture = self._opened()
        rate = capture.get(cv2.CAP_PROP_FPS)
        capture.release()
        if not 0 < rate < 1e6:
            raise LocusError(f"{self.path} does not say how many frames a second it has")
        return rate

    def count(self) -> int:
        """How many frames there are: as many as the file says if the last of them is there, else they are counted."""
        _ = self.size  # refuses what is too large
        capture = self._opened()
        count = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        capture.set(cv2.CAP_PROP_POS_FRAMES, count - 1)
        if count < 1 or not capture.grab():  # streams do not say, others estimate, and a forged file may claim anything
            capture, count = self._opened(), 0
            while capture.grab():
                count += 1
        capture.release()
        if not count:
            raise LocusError(f"{self.path} is a video without a frame that can be read")
        return count

    def read(self, number: int) -> UInt8[ndarray, "h w 3"]:
        with self._lock:
            if number in self._passed:
                return self._passed.pop(number)
            if self._capture is None or number < self._next:
                self._capture, self._next = self._opened(), 0
            while True:
                if not self._capture.grab():
                    raise LocusError(f"{self.path} ends or is damaged before its frame {number}")
                self._next += 1
                if self._next > number:
                    return self._picture()
                passed = self._next - 1
                if passed % self.every == 0 and number - passed <= self.KEPT * self.every:
                    self._passed[passed] = self._picture()
                    self._passed = dict(list(self._passed.items())[-self.KEPT :])

    def _picture(self) -> UInt8[ndarray, "h w 3"]:
        assert self._capture is not None
        found, picture = self._capture.retrieve()
        if not found:
            raise LocusError(f"{self.path} is damaged at its frame {self._next - 1}")
        return np.ascontiguousarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB))

    def _opened(self) -> cv2.VideoCapture:
        with opened(admitted(self.path), UNLIMITED) as file:
            if _has_gap(file):
                raise LocusError(f"{self.path} has a long stretch without content, so it is not whole; copy it again")
        capture = cv2.VideoCapture(str(self.path))
        if not capture.isOpened():
            raise LocusError(f"{self.path} is not a video that OpenCV can read; convert it to MP4")
        return capture


def _has_gap(file: BinaryIO) -> bool:
    """Whether a file ends in zeros, or takes no room on disk somewhere: FFmpeg would look for frames in all of that."""
    file.seek(4)
    indexed = file.read(4) == b"ftyp"  # MP4 says where its frames are
    size = file.seek(0, os.SEEK_END)
    if indexed or size < GAP:
        return False
    file.seek(size - GAP)
    if not any(file.read()):
        return True
    at = 0
    while hasattr(os, "SEEK_HOLE") and (hole := os.lseek(file.fileno(), at, os.SEEK_HOLE)) < size:
        at = os.lseek(file.fileno(), hole, os.SEEK_DATA)  # the end is not a hole, as was seen above
        if at - hole >= GAP:
            return True
    return False


@dataclass(frozen=True, eq=False)
class VideoFrame(Source):
    """A frame whose image is in a video; its depth is a reader's matter, and none here."""

    video: Video
    number: int
    stored_pose: Float[ndarray, "4 4"]
    calibration: tuple[float, ...]
    """fx fy cx cy of the video's frames in OpenCV's convention, and `Lens`'s coefficients if it distorts."""

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return self.straight(self.video.read(self.number))

    def image_size(self) -> tuple[int, int]:
        return self.video.size

    def has_depth(self) -> bool:
        return False

    def camera(self) -> Camera:
        return camera_from_four(self.calibration, self.video.size, f"the calibration of {self.video.path.name}")

    def lens(self) -> Lens:
        return Lens(*self.calibration[4:9])

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.stored_pose
