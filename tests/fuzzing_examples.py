"""Small sound examples of all that LoCUS reads, and for each a use of it."""

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import trimesh
from safetensors.torch import save_file

import locus
from locus import backbones
from locus.backbones.conversion import read as read_weights
from locus.commands.check import check
from locus.errors import FrameError
from locus.evaluation.masks import MaskPredictions
from locus.evaluation.pairs import read_pairs
from locus.evaluation.predictions import PosePredictions
from locus.features.feature_file import FeatureFile, Header, finished, open_features
from locus.features.frame_arrays import read_arrays, write_array
from locus.features.images import sources
from locus.features.journal import journal_of
from locus.houses.outside import load_models
from locus.landmarks import LandmarkMap
from locus.model import LoCUS
from locus.model.authors import authors_head
from locus.render.mesh_file import load_parts
from locus.scenes import export
from locus.scenes.collection import find_scenes
from locus.scenes.formats.scannet import TABLE
from locus.scenes.scene import LabelClass
from locus.tasks.probe import Probe
from locus.training import train
from locus.training.checkpoints import LAST, METRICS, SETTINGS, begin, load_state, read_metrics
from tests import fuzzing_more, networks
from tests.fuzzing_more import use_frames
from tests.landmarks import places
from tests.scenes import bags, layouts, phone_layouts, room, rtabmap_layout, test_hypersim
from tests.training import launching

SHOTS = room.shots(2)
HEADER = Header("a model", "1234", (0.2,), "dense", 0)
TOKENS = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float16)


def use_scene(path: Path) -> list[FrameError]:
    """Open a scene and ask its first frames for everything; what they refused."""
    return use_frames(locus.load_scene(path))


def scene(write: Callable[..., object], name: str = "scene") -> tuple[Callable, Callable]:
    """What writes a folder's scene under a name, and what uses it."""
    return lambda root: write(_made(root / name), SHOTS), lambda root: use_scene(root / name)


def one_file(write: Callable[..., object], name: str) -> tuple[Callable, Callable]:
    return lambda root: write(root / name, SHOTS), lambda root: use_scene(root / name)


def bag(kind: str) -> tuple[Callable, Callable]:
    def use(root: Path) -> list[FrameError]:
        names = ("walk.bag", "walk/walk.db3", "walk/walk.mcap")
        alone = next((root / name for name in names if (root / name).exists()), root / "walk")
        return use_scene(root / "walk" if kind in ("sqlite3", "mcap", "mcap-zstd", "sqlite3-messages") else alone)

    return lambda root: bags.walk(root, kind, SHOTS), use


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _native(root: Path, shots: list[room.Shot]) -> None:
    export(places.scene(shots, root.name), root / "written")


def _labelled(root: Path, shots: list[room.Shot]) -> None:
    layouts.scannet(root, shots)
    rows = [f"{number}\t{number}\t{name}" for number, (name, _) in room.CLASSES.items()]
    (root / TABLE).write_text("\n".join(["id\tnyu40id\tnyu40class", *rows]) + "\n")


def _regions(root: Path, shots: list[room.Shot]) -> None:
    layouts.matterport(root, shots)
    layouts.matterport_regions(root)


def _binary_colmap(root: Path, shots: list[room.Shot]) -> None:
    import pycolmap

    layouts.colmap(root, shots)
    model = pycolmap.Reconstruction(str(root / "sparse/0"))
    for file in (root / "sparse/0").iterdir():
        file.unlink()
    model.write_binary(str(root / "sparse/0"))


def _feature_file(root: Path) -> None:
    with FeatureFile(root / "f.h5", HEADER) as file:
        for name in ("a", "folder/b"):
            file.write(name, np.full((1, 6, 8, 16), 0.5, np.float16), (80, 60), "state")
        file.commit()
        journal = journal_of(root / "f.h5").read_bytes()
    journal_of(root / "f.h5").write_bytes(journal)


def _use_features(root: Path) -> None:
    finished(root / "f.h5", HEADER)
    with open_features(root / "f.h5") as file:
        found: list[Any] = []
        file.visititems(lambda name, item: found.append(item) if hasattr(item, "shape") else None)
    with FeatureFile(root / "f.h5", HEADER) as file:
        file.write("a", np.zeros((1, 6, 8, 16), np.float16), (80, 60), "another")
        file.commit()


def _map(root: Path) -> None:
    seen = places.seen(places.scene(SHOTS), scales=2)
    world = LandmarkMap.build(places.model((0.15, 0.3)), seen, most=6, detector=places.Scattered(20))
    world.save(root / "map")


def _use_map(root: Path) -> None:
    world = LandmarkMap.load(root / "map")
    if world.points is not None:
        world.points.frame(0)
    world.environment_number(None)


def _model(root: Path) -> None:
    LoCUS("classic", head="linear", dimension=8, radii=(0.15, 0.3)).save_pretrained(root / "model")


def _authors(root: Path) -> None:
    torch.save({"0.weight": torch.zeros(4, 4), "3.bias": torch.zeros(4)}, root / "head.pth")


def _weights(root: Path) -> None:
    save_file({"a.weight": torch.zeros(4, 4)}, root / "w.safetensors")
    torch.save({"model": {"a.weight": torch.zeros(4, 4)}}, root / "w.pth")


def _use_weights(root: Path) -> None:
    read_weights(root / "w.safetensors")
    read_weights(root / "w.pth")


def _run(root: Path) -> None:
    layouts.nerfstudio(_made(root / "room"), room.shots(8))
    train([root / "room"], root / "run", replace(launching.SETTINGS, steps=1, validate_every=1), cache=root / "tokens")
    kept = (root / "run" / name for name in (SETTINGS, METRICS, LAST))
    contents = {file: file.read_bytes() for file in kept}
    for folder in ("room", "run", "tokens"):
        shutil.rmtree(root / folder)
    for file, content in contents.items():
        _made(file.parent)
        file.write_bytes(content)


def _use_run(root: Path) -> None:
    read_metrics(root / "run" / METRICS)
    load_state(root / "run" / LAST)
    begin(root / "run", {"settings": json.loads(json.dumps(vars(launching.SETTINGS)))})


def _probe(root: Path) -> None:
    classes = (LabelClass(1, "wall", "stuff"), LabelClass(2, "chair", "thing"))
    Probe(classes, torch.randn(2, 8), torch.randn(2), 0, False, "m", "1234").save(root / "probe.safetensors")


def _predictions(root: Path) -> None:
    lines = [{"scene": "s", "a": str(k), "b": str(k + 1), "b_from_a": np.eye(4).tolist()} for k in range(3)]
    (root / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    four, three = " ".join(map(str, np.eye(4).ravel())), " ".join(map(str, np.eye(3).ravel()))
    (root / "pairs.txt").write_text(f"# pairs\na b\nc d 0 0 {three} {three} {four}\n")


def _use_predictions(root: Path) -> None:
    PosePredictions(root / "p.jsonl").poses("s", [("0", "1")])
    read_pairs(root / "pairs.txt")


def _masks(root: Path) -> None:
    layouts.save(root / "room/a.png", SHOTS[0].semantic.astype(np.uint16))
    (root / "room.json").write_text(json.dumps({str(number): name for number, (name, _) in room.CLASSES.items()}))


def _mesh(root: Path) -> None:
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 1\nusemtl cloth\nf 1/1 2/2 3/1\nf 2/1 3/1 4/2\n"
    (root / "chair.obj").write_text(f"mtllib chair.mtl\n{corners}")
    (root / "chair.mtl").write_text("newmtl cloth\nKd 0.5 0.5 0.5\nmap_Kd chair.png\n")
    layouts.save(root / "chair.png", SHOTS[0].image)
    (root / "kinds.txt").write_text("chair chair\n")
    for name in ("sofa.glb", "table.ply"):
        trimesh.creation.box().export(root / name)


def _use_meshes(root: Path) -> None:
    for file in ("chair.obj", "sofa.glb", "table.ply"):
        load_parts(root / file, "y")
    for models in load_models(root).values():
        for load in models:
            load()


def _images(root: Path) -> None:
    for number, ending in enumerate(("png", "jpg", "webp", "tif", "bmp", "gif")):
        layouts.save(root / f"images/{number}.{ending}", SHOTS[0].image)
    phone_layouts.save_video(root / "images/clip.avi", SHOTS)
    phone_layouts.save_video(root / "clip.mp4", SHOTS)


def _use_images(root: Path) -> None:
    for image in sources([root / "images", root / "clip.mp4"])[:10]:
        image.read()


def _list(root: Path) -> None:
    layouts.nerfstudio(_made(root / "a"), SHOTS[:1])
    (root / "scenes.txt").write_text("# scenes\na\n")


EXAMPLES: Mapping[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "nerfstudio": scene(layouts.nerfstudio),
    "native": (lambda root: _native(root, SHOTS), lambda root: use_scene(root / "written")),
    "tum": scene(layouts.tum),
    "freiburg": scene(layouts.tum, "rgbd_dataset_freiburg1_xyz"),
    "bonn": scene(layouts.rgbd_bonn, "rgbd_bonn_balloon"),
    "openloris": scene(layouts.openloris),
    "7scenes": scene(layouts.sevenscenes_official),
    "7scenes flat": scene(layouts.sevenscenes_flat),
    "matterport": scene(layouts.matterport, "house"),
    "matterport regions": scene(_regions, "house"),
    "replica": scene(layouts.replica),
    "scannet": scene(layouts.scannet),
    "scannet labels": scene(_labelled),
    "taskonomy": scene(layouts.taskonomy),
    "colmap": scene(layouts.colmap),
    "colmap binary": scene(_binary_colmap),
    "polycam": scene(layouts.polycam),
    "rtabmap": one_file(rtabmap_layout.rtabmap, "map.db"),
    "rtabmap rvl": one_file(
        lambda file, shots: rtabmap_layout.rtabmap(file, shots, rtabmap_layout.depth_in_rvl), "map.db"
    ),
    "r3d": one_file(phone_layouts.r3d, "walk.r3d"),
    "record3d export": scene(phone_layouts.record3d_export),
    "strayscanner": scene(phone_layouts.strayscanner),
    "video": one_file(phone_layouts.video, "clip.mp4"),
    "arkitscenes": scene(phone_layouts.arkitscenes),
    "sens": one_file(phone_layouts.sens, "walk.sens"),
    "scannet++": scene(phone_layouts.scannetpp),
    "hypersim": (lambda root: test_hypersim.write(root / "ai_001_001"), lambda root: use_scene(root / "ai_001_001")),
    **{f"bag {kind}": bag(kind) for kind in bags.KINDS},
    "map": (_map, _use_map),
    "model": (_model, lambda root: LoCUS.from_pretrained(root / "model").features(SHOTS[0].image)),
    "backbone": (lambda root: networks.save("vit", root / "vit"), lambda root: backbones.load(str(root / "vit"))),
    "authors' head": (_authors, lambda root: authors_head(root / "head.pth")),
    "weights": (_weights, _use_weights),
    "feature file": (_feature_file, _use_features),
    "cached array": (
        lambda root: write_array(root / "tokens.npy", TOKENS),
        lambda root: read_arrays([root / "tokens.npy"], np.float16, TOKENS.shape),
    ),
    "run": (_run, _use_run),
    "probe": (_probe, lambda root: Probe.load(root / "probe.safetensors").logits(torch.zeros(3, 8))),
    "predictions": (_predictions, _use_predictions),
    "masks": (_masks, lambda root: MaskPredictions(root)._names("room")),
    "meshes": (_mesh, _use_meshes),
    "images": (_images, _use_images),
    "list of scenes": (_list, lambda root: [use_scene(path) for path in find_scenes([root / "scenes.txt"])]),
    **fuzzing_more.EXAMPLES,
    "check": (lambda root: (_map(root), _probe(root), _feature_file(root)), lambda root: check((root,))),
}


def written(root: Path) -> dict[str, dict[str, bytes]]:
    """The files of every example, by their names."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (write, _) in EXAMPLES.items():
            folder = _made(root / name)
            write(folder)
            files = (file for file in sorted(folder.rglob("*")) if file.is_file())
            found[name] = {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
    return found
