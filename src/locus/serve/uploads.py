"""What a request brings: images, cameras and poses of strangers, checked before they are used."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float, Num, UInt8
from numpy import ndarray
from pydantic import BaseModel, ConfigDict, Field

from locus.errors import LocusError
from locus.geometry import Camera, rigid
from locus.scenes.lens import Lens
from locus.scenes.reading import Piece, image_size, read_depth, read_image
from locus.scenes.scene import Convention, Frame
from locus.scenes.source import Source
from locus.tasks.named_images import A_GUESS, CalibratedImage
from locus.tasks.prior import Prior

MEGAPIXELS = 16
# What an image may be. Pillow knows more, and starts other programs for some of them.
BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"II*\x00", b"MM\x00*")

Finite = Annotated[float, Field(allow_inf_nan=False)]
Row = Annotated[list[Finite], Field(min_length=4, max_length=4)]


class Intrinsics(BaseModel):
    """A camera, in pixels; the centre of the top-left pixel is at (0.5, 0.5). Distortion is OpenCV's."""

    model_config = ConfigDict(extra="forbid")
    fx: Finite = Field(description="Focal length along x.")
    fy: Finite = Field(description="Along y.")
    cx: Finite = Field(description="The principal point, from the image's left edge.")
    cy: Finite = Field(description="From its top.")
    width: int | None = Field(None, gt=0, description="Of the calibration's image. By default this image's.")
    height: int | None = Field(None, gt=0, description="The same.")
    k1: Finite = Field(0.0, description="Distortion along the radius.")
    k2: Finite = Field(0.0, description="The same.")
    p1: Finite = Field(0.0, description="Distortion across the radius.")
    p2: Finite = Field(0.0, description="The same.")
    k3: Finite = Field(0.0, description="Along the radius.")
    k4: Finite = Field(0.0, description="Along the radius, in the denominator of the rational model.")
    k5: Finite = Field(0.0, description="The same.")
    k6: Finite = Field(0.0, description="The same.")
    fisheye: bool = Field(False, description="k1 to k4 are those of OpenCV's fisheye model.")

    def camera(self, size: tuple[int, int]) -> Camera:
        """For an image of (width, height), if the calibration does not name its own."""
        return Camera(self.width or size[0], self.height or size[1], self.fx, self.fy, self.cx, self.cy)

    @property
    def lens(self) -> Lens:
        radial = (self.k1, self.k2, self.p1, self.p2, self.k3, self.k4, self.k5, self.k6)
        return Lens(*radial, fisheye=self.fisheye)


class PriorPose(BaseModel):
    """Where the image was probably taken; an answer farther away is none."""

    model_config = ConfigDict(extra="forbid")
    world_from_camera: list[Row] = Field(min_length=4, max_length=4, description="4×4, metres, OpenCV's axes.")
    environment: str | None = Field(None, description="Whose world it is in, if the maps have several.")
    metres: Finite = Field(Prior.metres, description="How far off it may be.")
    degrees: Finite = Field(Prior.degrees, description="The same, turned.")

    def prior(self) -> Prior:
        return Prior(rigid(np.array(self.world_from_camera)), self.environment, self.metres, self.degrees)


@dataclass(frozen=True, eq=False)
class UploadedSource(Source):
    """An image of a request as a frame, so that it is straightened, scaled and checked as those of scenes are."""

    packed: Piece
    packed_depth: Piece | None
    intrinsics: Camera
    distortion: Lens

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return self.straight(read_image(self.packed))

    def image_size(self) -> tuple[int, int]:
        return image_size(self.packed)

    def depth(self) -> Num[ndarray, "h w"]:
        assert self.packed_depth is not None
        return self.straight(read_depth(self.packed_depth))

    def camera(self) -> Camera:
        return self.intrinsics

    def lens(self) -> Lens:
        return self.distortion

    def pose(self) -> Float[ndarray, "4 4"]:
        return np.eye(4)


def calibrated_upload(
    name: str,
    data: bytes,
    intrinsics: Intrinsics | None = None,
    depth: bytes | None = None,
    depth_scale: float = 1000.0,
) -> CalibratedImage:
    """An image with its camera, a guess without intrinsics, and its depth, which has `depth_scale` units a metre."""
    packed = _checked(name, data)
    size = image_size(packed)
    packed_depth = None if depth is None else _checked(f"the depth of {name}", depth)
    camera = A_GUESS.of(*size) if intrinsics is None else intrinsics.camera(size)
    lens = Lens() if intrinsics is None else intrinsics.lens
    frame = Frame(UploadedSource(name, packed, packed_depth, camera, lens), Convention(depth_scale=depth_scale))
    depths = None if depth is None else frame.depth
    return CalibratedImage(name, frame.image, frame.camera, guessed=intrinsics is None, depth=depths)


def _checked(name: str, data: bytes) -> Piece:
    if not data.startswith(BEGINNINGS):
        raise LocusError(f"{name} is not a JPEG, PNG, WebP or TIFF file")
    packed = Piece(name, data)
    width, height = image_size(packed)
    if width * height > MEGAPIXELS * 10**6:
        raise LocusError(f"{name} has {width}×{height} pixels; {MEGAPIXELS} million are allowed: resize it first")
    return packed
