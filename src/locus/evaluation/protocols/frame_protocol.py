"""Protocols that need frames alone, of scenes that bring the truth with them."""

from abc import abstractmethod
from dataclasses import dataclass

from locus.evaluation.outcome import Benchmark
from locus.evaluation.scene_patches import OpenedScene
from locus.files import content_hash
from locus.scenes import Scene


@dataclass(frozen=True, eq=False)
class ProtocolScene(Scene):
    """Frames, and what a protocol says about them: which to localize, which pairs, which show the same place."""

    @abstractmethod
    def truth(self) -> object:
        """What it says, in values that a hash can be made of: results are kept by it."""


class FrameProtocol(Benchmark):
    """Measures frames as they are, not patches."""

    def given(self, opened: OpenedScene) -> Scene:
        return opened.scene

    def state(self, scene: ProtocolScene, /) -> str:
        return content_hash(super().state(scene), scene.truth())
