"""More small sound examples: what published protocols read, and what stands beside maps; and for each a use of it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from locus.errors import FrameError
from locus.evaluation.protocols.dense_layouts import Navi, Probe3D
from locus.evaluation.protocols.frame_protocol import FrameProtocol, ProtocolScene
from locus.evaluation.protocols.indoor_six import Indoor6
from locus.evaluation.protocols.listed_pairs import MegaDepth1500, ScanNet1500
from locus.evaluation.protocols.place_layouts import BaiduMall, SeventeenPlaces, UtmPlaces
from locus.evaluation.protocols.rio_ten import Rio10
from locus.evaluation.protocols.seven_scenes import SevenScenes
from locus.evaluation.protocols.sparse_planes import SparsePlanes
from locus.evaluation.protocols.twelve_scenes import TwelveScenes
from locus.landmarks import LandmarkMap
from locus.landmarks.indexing import build_index
from locus.landmarks.map_files import GRAPH
from locus.landmarks.map_index import MapIndex
from locus.scenes import Scene, SceneReading
from locus.tasks.instances import read_mask
from locus.tasks.place_graph import PlaceGraph
from locus.viewer.shown_changes import read_changes
from tests.evaluation.protocols import published_layouts, test_dense_correspondence, test_place_recognition
from tests.landmarks import places
from tests.scenes import layouts, room

PIECES = ("camera", "world_from_camera", "depth", "image", "semantic", "instance", "points")
SHOTS = room.shots(5)


def use_frames(scene: Scene) -> list[FrameError]:
    """Ask a scene's first frames for everything; what they refused."""
    refused = []
    for frame in scene[:3]:
        for piece in (*PIECES, "image_state", "depth_state", "label_state"):
            try:
                value = getattr(frame, piece, None)
                if callable(value):
                    value()
            except FrameError as error:
                refused.append(error)
    return refused


def protocol(benchmark: FrameProtocol, write: Callable[..., object], *more: object) -> tuple[Callable, Callable]:
    def written(root: Path) -> None:
        (root / "scene").mkdir(parents=True)
        write(root / "scene", *more)

    def use(root: Path) -> list[FrameError]:
        scene = benchmark.load(root / "scene", SceneReading())
        assert isinstance(scene, ProtocolScene)
        scene.truth()
        return use_frames(scene)

    return written, use


def _graph(root: Path) -> None:
    radii = (0.15, 0.6, 2.5)
    seen = places.seen(places.scene(SHOTS), scales=3)
    PlaceGraph.build(LandmarkMap.build(places.model(radii), seen), seen).save(root / GRAPH)


def _use_graph(root: Path) -> None:
    graph = PlaceGraph.load(root / GRAPH)
    for place in graph.places:
        graph.inside(place.id)
    for place in graph.places[:1]:
        graph.find(np.array(place.embedding, np.float32), place.kind)


def _changes(root: Path) -> None:
    there = {"points": [[0, 0, 1], [0.5, 0, 1]]}
    told = [{"change": "moved", "probability": 0.7, "before": there, "after": there}]
    (root / "changes.json").write_text(json.dumps({"changes": told}))


def _index(root: Path) -> None:
    world = LandmarkMap.build(places.model((0.15, 0.3)), places.seen(places.scene(SHOTS), scales=2), most=6)
    world.save(root / "map")
    build_index([root / "map"], root / "index")


def _use_index(root: Path) -> None:
    index = MapIndex.load(root / "index")
    index.search(index.world(0).landmarks.embedding[:3], 1)


def _mask(root: Path) -> None:
    layouts.save(root / "mask.png", (SHOTS[0].semantic > 2).astype(np.uint8))


PAIRS = (SHOTS, [(0, 1), (2, 3)])
EXAMPLES: Mapping[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "protocol 7scenes": protocol(SevenScenes(), published_layouts.seven_scenes, SHOTS),
    "protocol 12scenes": protocol(TwelveScenes(), published_layouts.twelve_scenes, SHOTS),
    "protocol indoor6": protocol(Indoor6(), published_layouts.indoor_six, SHOTS),
    "protocol rio10": protocol(Rio10(), published_layouts.rio_ten, SHOTS),
    "protocol scannet1500": protocol(ScanNet1500(), published_layouts.superglue_list, *PAIRS),
    "protocol scannet1500 npz": protocol(ScanNet1500(), published_layouts.loftr_archive, *PAIRS),
    "protocol megadepth1500": protocol(MegaDepth1500(), published_layouts.glue_factory_list, *PAIRS),
    "protocol sparseplanes": protocol(SparsePlanes(), published_layouts.sparse_planes, *PAIRS),
    "protocol probe3d": protocol(Probe3D(), test_dense_correspondence.scannet),
    "protocol navi": protocol(Navi(), test_dense_correspondence.navi),
    "protocol vpr": protocol(UtmPlaces(), test_place_recognition.utm, SHOTS),
    "protocol baidu": protocol(BaiduMall(), test_place_recognition.baidu, SHOTS),
    "protocol 17places": protocol(SeventeenPlaces(), test_place_recognition.seventeen, SHOTS),
    "graph": (_graph, _use_graph),
    "changes": (_changes, lambda root: read_changes(root / "changes.json")),
    "index": (_index, _use_index),
    "mask": (_mask, lambda root: read_mask(root / "mask.png", (room.WIDTH, room.HEIGHT))),
}
