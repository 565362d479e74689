"""ROS bags: a ROS 1 `.bag`, a ROS 2 folder with `metadata.yaml`, a single `.mcap` or `.db3`. Needs the extra `capture`.

Colour and depth are paired by the stamps of their headers; poses come from tf or from a topic of poses, interpolated.
Depth of another camera than colour's is carried over to it, and lens distortion is undone.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.scenes.formats.rosbag_frames import BagFrame, rig
from locus.scenes.formats.rosbag_images import UNITS, first_bytes
from locus.scenes.formats.rosbag_storage import Bag, Entry
from locus.scenes.formats.rosbag_topics import Topics
from locus.scenes.formats.rosbag_transforms import PoseTopic, Tree
from locus.scenes.scene import Convention, Scene
from locus.scenes.timing import TOGETHER, mutual_nearest

FILES = (".bag", ".mcap", ".db3")


def detect(path: Path) -> bool:
    if path.is_file():
        return path.suffix in FILES
    return (path / "metadata.yaml").is_file() and any(next(path.glob(f"*{ending}*"), None) for ending in FILES)


def read(path: Path, allow_outside: bool, topics: tuple[str, ...] = ()) -> Scene:
    bag = Bag(path)
    chosen = Topics(bag, topics)
    recording = BagRecording(chosen)
    stamps, depth_stamps = stamps_of(recording.colour), stamps_of(recording.depth)
    origin = stamps.min(initial=2**62)
    depth_of = mutual_nearest((stamps - origin) * 1e-9, (depth_stamps - origin) * 1e-9, TOGETHER)
    poses, posed = recording.poses(stamps)
    cameras = rig(chosen, recording.tree)
    chosen.refuse_unused()
    sources, skipped = [], recording.skipped
    for k, (stamp, entry) in enumerate(recording.colour):
        name = f"{stamp // 10**9}.{stamp % 10**9:09d}"
        if chosen.depth is not None and depth_of[k] < 0:
            skipped[name] = f"no depth image within {TOGETHER * 1000:.0f} ms"
        elif not posed[k]:
            skipped[name] = "no pose at its time"
        else:
            depth = None if chosen.depth is None else recording.depth[depth_of[k]][1]
            sources.append(BagFrame(name, bag, cameras, entry, depth, poses[k]))
    unit = UNITS["16UC1" if chosen.depth is None else chosen.heads[chosen.depth].encoding]
    name = path.stem if path.is_file() else path.name
    return Scene(name, "rosbag", sources, Convention(depth_scale=unit), skipped=skipped)


def stamps_of(images: list[tuple[int, Entry]]) -> Int64[ndarray, "n"]:
    return np.array([stamp for stamp, _ in images], np.int64)


class BagRecording:
    """One pass over a bag: when its images were taken and where they are, and all that says where its camera was."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self.tree, self.pose_topic = Tree(), PoseTopic()
        self.skipped: dict[str, str] = {}
        self.colour: list[tuple[int, Entry]] = []
        self.depth: list[tuple[int, Entry]] = []
        wanted = (topics.colour, topics.depth, topics.pose_topic, *topics.trees)
        bag = topics.bag
        for entry in bag.entries([topic for topic in wanted if topic is not None]):
            if entry.topic == topics.colour:
                self._add_image(entry, self.colour)
            elif entry.topic == topics.depth:
                self._add_image(entry, self.depth)
            elif entry.topic == topics.pose_topic:
                self.pose_topic.add(bag.message(entry), bag.topics[entry.topic])
            else:
                self.tree.add(bag.message(entry))
        self.colour.sort()
        self.depth.sort()

    def _add_image(self, entry: Entry, images: list[tuple[int, Entry]]) -> None:
        try:
            stamp = first_bytes(self.topics.bag, entry).stamp
            if stamp <= 0:
                raise LocusError("its header has no time")
            images.append((stamp, entry))
        except LocusError as error:
            self.skipped[f"{entry.topic} at byte or row {entry.chunk + entry.offset}"] = str(error)

    def poses(self, stamps: Int64[ndarray, "n"]) -> tuple[Float[ndarray, "n 4 4"], Bool[ndarray, "n"]]:
        """world_from_camera at some times, and where it is known."""
        frame = self.topics.heads[self.topics.colour].frame
        if self.topics.pose(self.tree.world(frame)) != self.topics.pose_topic:
            return self.tree.poses(frame, stamps)
        body = self.pose_topic.body
        body_from_camera = self.tree.between(body, frame) if body else np.eye(4)
        if body_from_camera is None:
            raise SceneError(
                f"{self.topics.bag.path} does not say in tf_static how the camera's {frame} is placed to {body}, whose "
                f"poses {self.topics.pose_topic} holds; record tf_static too"
            )
        poses, known = self.pose_topic.track.at(stamps)
        return poses @ body_from_camera, known
