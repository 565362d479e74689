"""Frames of a bag: images and depth of messages, as one pinhole camera would have seen them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num, UInt8
from numpy import ndarray

from locus.errors import SceneError
from locus.geometry import Camera
from locus.scenes.formats.rosbag_cameras import Optics
from locus.scenes.formats.rosbag_images import UNITS, colour_image, depth_image, first_bytes, message_image_size
from locus.scenes.formats.rosbag_storage import Bag, Entry
from locus.scenes.formats.rosbag_topics import Topics, info_topic
from locus.scenes.formats.rosbag_transforms import Tree
from locus.scenes.lens import Lens
from locus.scenes.registration import register
from locus.scenes.source import Source


@dataclass(frozen=True, eq=False)
class Rig:
    """The cameras of a bag."""

    colour: Optics
    depth: Optics | None
    """The camera of depth that is not registered; None if depth is the colour camera's."""
    colour_from_depth: Float[ndarray, "4 4"]
    """In the unit of the depth."""


def rig(topics: Topics, tree: Tree) -> Rig:
    """What colour and depth were taken with, and whether it is the same."""
    path, colour, depth = topics.bag.path, topics.colour, topics.depth
    camera = topics.optics(colour)
    if camera is None:
        raise SceneError(f"{path} has no camera for {colour}; record {info_topic(colour)} too")
    if depth is None:
        return Rig(camera, None, np.eye(4))
    frame, depth_frame = topics.heads[colour].frame, topics.heads[depth].frame
    if frame == depth_frame and info_topic(depth) not in topics.bag.topics:
        return Rig(camera, None, np.eye(4))
    other = topics.optics(depth)
    if frame == depth_frame and other is not None and other.agrees(camera):
        return Rig(camera, None, np.eye(4))
    if other is None:
        raise SceneError(f"{path} has no camera for {depth}, which is not registered; record {info_topic(depth)} too")
    colour_from_depth = tree.between(frame, depth_frame)
    if colour_from_depth is None:
        raise SceneError(
            f"{path} does not say in tf_static how {depth_frame}, which {depth} was taken from, is placed to {frame}; "
            "record tf_static too, or depth that is registered to colour"
        )
    colour_from_depth[:3, 3] *= UNITS[topics.heads[depth].encoding]
    return Rig(camera, other, colour_from_depth)


@dataclass(frozen=True, eq=False)
class BagFrame(Source):
    bag: Bag
    rig: Rig
    colour_entry: Entry
    depth_entry: Entry | None
    stored_pose: Float[ndarray, "4 4"]

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return self.straight(colour_image(self.bag.message(self.colour_entry), self.colour_entry.topic))

    def image_size(self) -> tuple[int, int]:
        topic = self.colour_entry.topic
        size = first_bytes(self.bag, self.colour_entry).size
        return size or message_image_size(self.bag.message(self.colour_entry), topic)

    def has_depth(self) -> bool:
        return self.depth_entry is not None

    def depth(self) -> Num[ndarray, "h w"]:
        if self.depth_entry is None:
            return super().depth()
        depth = depth_image(self.bag.message(self.depth_entry), self.depth_entry.topic)
        taken_with = self.rig.depth
        if taken_with is None:
            return self.straight(depth)
        if taken_with.lens.distorts:
            depth = taken_with.lens.straighten(depth, taken_with.camera)
        camera = self.camera().resized(*self.image_size())
        return register(depth, taken_with.camera, camera, self.rig.colour_from_depth)

    def camera(self) -> Camera:
        return self.rig.colour.camera

    def lens(self) -> Lens:
        return self.rig.colour.lens

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.stored_pose
