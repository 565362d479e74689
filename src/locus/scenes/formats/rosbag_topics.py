"""Which of a bag's topics make a scene: by themselves where there is one of a kind, else as the user says."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from locus.errors import SceneError
from locus.scenes.formats.rosbag_cameras import INFO, Optics, optics
from locus.scenes.formats.rosbag_images import COMPRESSED, RAW, ImageHead, first_bytes
from locus.scenes.formats.rosbag_storage import Bag, Entry
from locus.scenes.formats.rosbag_transforms import POSES, TREES


@dataclass
class Topics:
    """The topics of a bag, and the user's choice among them."""

    bag: Bag
    given: tuple[str, ...]

    def __post_init__(self) -> None:
        known = {topic.strip("/"): topic for topic in self.of((RAW, COMPRESSED, INFO, *POSES, *TREES))}
        for topic in self.given:
            if topic.strip("/") not in known:
                found = ", ".join(sorted(known.values())) or "none"
                raise SceneError(f"{self.bag.path} has no topic {topic} with images, cameras or poses; it has {found}")
        self.given = tuple(known[topic.strip("/")] for topic in self.given)
        self.unused = set(self.given)

    def of(self, kinds: Iterable[str]) -> list[str]:
        return sorted(topic for topic, kind in self.bag.topics.items() if kind in kinds)

    def choose(self, what: str, candidates: Iterable[str]) -> str | None:
        """The one that was given, else the only one there is."""
        found = list(candidates)
        found = [topic for topic in found if topic in self.given] or found
        if len(found) > 1:
            several = ", ".join(found)
            raise SceneError(f"{self.bag.path} has several topics of {what}; choose one with --topic: {several}")
        self.unused -= set(found)
        return found[0] if found else None

    def refuse_unused(self) -> None:
        """Once all are chosen."""
        if self.unused:
            unused = ", ".join(sorted(self.unused))
            raise SceneError(f"{self.bag.path}: nothing can be made of {unused}; leave out that --topic")

    @cached_property
    def trees(self) -> list[str]:
        return self.of(TREES)

    @cached_property
    def heads(self) -> dict[str, ImageHead]:
        """Of the first image of each topic; of one that is there raw and compressed, the raw one unless given."""
        firsts: dict[str, Entry] = {}
        for entry in self.bag.entries(self.of((RAW, COMPRESSED))):
            firsts.setdefault(entry.topic, entry)
        return {
            topic: first_bytes(self.bag, entry)
            for topic, entry in firsts.items()
            if topic in self.given or plain(topic) == topic or plain(topic) not in firsts
        }

    @cached_property
    def colour(self) -> str:
        images = [topic for topic, head in self.heads.items() if head.is_colour]
        coloured = [topic for topic in images if not self.heads[topic].is_grey or topic in self.given]
        colour = self.choose("colour images", coloured or images)
        if colour is None:
            found = ", ".join(f"{topic} ({head.encoding})" for topic, head in self.heads.items()) or "none"
            raise SceneError(f"{self.bag.path} has no topic of colour images that can be read; images are in {found}")
        return colour

    @cached_property
    def depth(self) -> str | None:
        """None if the bag has no depth."""
        images = [topic for topic, head in self.heads.items() if head.is_depth]
        frame = self.heads[self.colour].frame
        registered = [topic for topic in images if self.heads[topic].frame == frame or topic in self.given]
        return self.choose("depth", registered or images)

    def pose(self, world: str | None) -> str:
        """The topic that says where the camera is, given the fixed frame that tf starts from, if it has one."""
        moving = [topic for topic in self.trees if not topic.endswith("tf_static")][:1] if world is not None else []
        chosen = self.choose("poses", [*self.of(POSES), *moving])
        if chosen is None:
            raise SceneError(
                f"{self.bag.path} does not say where its camera is: it has no topic of poses, and tf does not lead "
                f"from a fixed frame such as map, odom or world to a moving {self.heads[self.colour].frame}"
            )
        return chosen

    @cached_property
    def pose_topic(self) -> str | None:
        """A topic of poses that may be used: the one that was given, or the only one."""
        topics = self.of(POSES)
        given = [topic for topic in topics if topic in self.given]
        return (given or topics)[0] if len(given or topics) == 1 else None

    def optics(self, topic: str) -> Optics | None:
        """The camera of a topic of images: the camera_info beside it, or the one of its frame."""
        ends: dict[str, tuple[Entry, Entry]] = {}  # the first and the last message
        for entry in self.bag.entries(self.of((INFO,))):
            ends[entry.topic] = ends.get(entry.topic, (entry,))[0], entry
        beside = info_topic(topic)
        if beside not in ends or any(info in self.given for info in ends):
            frame = self.heads[topic].frame
            same = [info for info, (first, _) in ends.items() if self.frame(first) == frame]
            beside = self.choose(f"camera_info for {topic}", same) or beside
        if beside not in ends:
            return None
        first, last = (self.bag.message(entry) for entry in ends[beside])
        rectified = plain(topic).rsplit("/", 1)[-1].startswith("image_rect")
        found = optics(first, beside, rectified)
        if optics(last, beside, rectified) != found:
            raise SceneError(f"{beside} changes during the recording; record with one focus and one resolution")
        return found

    def frame(self, entry: Entry) -> str:
        return self.bag.message(entry).header.frame_id.strip("/")


def plain(topic: str) -> str:
    """A topic's name without what image_transport adds."""
    return topic.removesuffix("/compressed").removesuffix("/compressedDepth")


def info_topic(topic: str) -> str:
    """Where image_transport looks for the camera of a topic of images."""
    return plain(topic).rpartition("/")[0] + "/camera_info"
