"""What the service answers, as its OpenAPI page describes it; errors are `{"detail": "one sentence"}`."""

from typing import Any

from pydantic import BaseModel, Field

Matrix = list[list[float]]


class PoseAnswer(BaseModel):
    """Where an image was taken, or why that cannot be said."""

    environment: str | None = Field(description="None if the image was not taken in any environment of the maps.")
    world_from_camera: Matrix | None = Field(None, description="4×4, metres, OpenCV's axes.")
    covariance: Matrix | None = Field(
        None, description="6×6, rotation first, in radians and metres along the camera's axes: docs/maps.md."
    )
    probability: float | None = Field(None, description="That the pose is right to 0.1 m and 5°.")
    confidence: float = Field(description="From 0 to 1, how far the matches are above chance: docs/maps.md.")
    reason: str = Field(description="Why there is no pose, in one sentence; empty if there is one.")
    doubt: str = Field(description="What may be wrong with the intrinsics; empty if nothing speaks for it.")
    how: str = Field(description="What the pose was found from: landmarks or points.")
    matches: int = Field(description="With landmarks or points.")
    inliers: int = Field(description="Matches that agree with the pose.")
    stuck: float = Field(description="The share of matches at the same image position.")


class RankedFrame(BaseModel):
    """A frame of a map."""

    environment: str
    frame: str
    score: float


class Retrieved(BaseModel):
    """Frames of the maps, the most similar first."""

    stuck: float = Field(description="The share of matches at the same image position.")
    frames: list[RankedFrame] = Field(description="Environment, name and score (0 to 1) of each.")


class Matched(BaseModel):
    """What two images share, and how the camera moved between them: docs/matching.md."""

    images: list[dict[str, Any]] = Field(description="Their sizes and cameras, and whether those are guesses.")
    matches: dict[str, Any] = Field(description="Pixels in both images, scores, and which agree with the pose.")
    pose: dict[str, Any] = Field(description="b_from_a, covariance, probability, and the reason of none.")


class FoundSpot(BaseModel):
    """A spot in another image."""

    name: str = Field(description="Of the file.")
    score: float = Field(description="The similarity (cosine) of the most similar patch.")
    mask: str = Field(description="A PNG of the image's size, base64: 255 where it is, 0 elsewhere.")


class Cosegmented(BaseModel):
    """A spot in other images, in their order."""

    min_similarity: float = Field(description="The least cosine of a pixel in a mask.")
    found: list[FoundSpot] = Field(description="Name, score (cosine of the best patch) and mask (PNG, base64) of each.")


class ServedMap(BaseModel):
    """A map that is served."""

    folder: str
    environments: list[str]
    landmarks: int
    frames: int
    points: int


class Maps(BaseModel):
    """The maps that are served."""

    model: str = Field(description="Whose features the maps hold.")
    radii: list[float] = Field(description="Of its scales, in metres.")
    maps: list[ServedMap] = Field(description="Folder, environments, landmarks, frames and points of each.")
    problem: str = Field(description="Why not all that is on disk is served; empty if it is.")


class Health(BaseModel):
    """Whether the service is well."""

    status: str = Field(description="ok, or what is wrong.")
    waiting: int = Field(description="Images admitted and not answered yet.")
    problem: str = Field(description="Why not all maps on disk are served; empty if they are.")
