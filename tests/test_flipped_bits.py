"""One flipped bit anywhere in a file of ours is noticed: when it is loaded, and by `locus check`."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from locus.cli import main
from locus.errors import LocusError
from locus.features.feature_file import FeatureFile, Header, open_features
from locus.features.frame_arrays import read_arrays, write_array
from locus.files import save_json
from locus.keypoints.place_glue import SHIPPED
from locus.landmarks import LandmarkMap
from locus.landmarks.indexing import build_index
from locus.landmarks.map_files import GRAPH
from locus.landmarks.map_index import MapIndex
from locus.model import LoCUS
from locus.model.shipped import MODELS
from locus.scenes import export, load_scene
from locus.scenes.scene import LabelClass
from locus.tasks.objects import FITTED
from locus.tasks.place_graph import PlaceGraph
from locus.tasks.probability import CURVES
from locus.tasks.probe import Probe
from locus.training import train
from locus.training.checkpoints import LAST, METRICS, SETTINGS, load_state
from locus.viewer.shown_changes import read_changes
from tests.landmarks import places
from tests.scenes import layouts, room
from tests.training import launching

TOKENS = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float16)
SMALL = replace(launching.SETTINGS, steps=1, validate_every=1)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """A folder of everything that LoCUS keeps."""
    root = tmp_path_factory.mktemp("ours")
    (root / "room").mkdir()
    layouts.nerfstudio(root / "room", room.shots(12))
    scene = load_scene(root / "room")
    export(scene[:3], root / "scene")
    model = LoCUS("classic", head="linear", dimension=8, radii=(0.15, 0.3))
    model.save_pretrained(root / "model")
    seen = places.seen(places.scene(room.shots(12)[:3]), scales=2)
    world = LandmarkMap.build(places.model((0.15, 0.3)), seen, most=6, detector=places.Scattered(40))
    world.save(root / "map")
    with FeatureFile(root / "f.h5", Header("a model", "1234", (0.2,), "dense", 0)) as file:
        for number in range(3):
            file.write(f"folder/image {number}", np.full((1, 6, 8, 16), number, np.float16), (80, 60), "state")
            file.commit()
    write_array(root / "cache" / "tokens.npy", TOKENS)
    classes = (LabelClass(1, "wall", "stuff"), LabelClass(2, "chair", "thing"))
    Probe(classes, torch.randn(2, 8), torch.randn(2), 0, False, "a model", "1234").save(root / "probe.safetensors")
    radii = (0.15, 0.6, 2.5)
    seen = places.seen(places.scene(room.shots(6)), scales=3)
    graphed = LandmarkMap.build(places.model(radii), seen)
    graphed.save(root / "graphed")
    PlaceGraph.build(graphed, seen).save(root / "graphed" / GRAPH)
    if find_spec("faiss") is not None:
        build_index([root / "map"], root / "index")
    save_json(root / "changes" / "changes.json", {"changes": []})
    train([root / "room"], root / "run", SMALL, cache=root / "tokens")
    return root


LOADERS = {
    "map/map.safetensors": lambda file: LandmarkMap.load(file.parent),
    "map/points": lambda file: LandmarkMap.load(file.parent),
    "model": lambda file: LoCUS.from_pretrained(file.parent),
    "run/checkpoints": load_state,
    "f.h5": lambda file: open_features(file).close(),
    "cache": lambda file: read_arrays([file], np.float16, TOKENS.shape),
    "probe": Probe.load,
    "graphed/map.safetensors": lambda file: LandmarkMap.load(file.parent),
    "graphed/graph": PlaceGraph.load,
    "index/index.json": lambda file: MapIndex.load(file.parent),
    "changes": read_changes,
}


def files(root: Path) -> list[Path]:
    """All but what is for people alone: pictures and pages, and a recording of TensorBoard."""
    found = (file for file in sorted(root.rglob("*")) if file.is_file() and "room" not in file.parts)
    mine = [file for file in found if "tensorboard" not in file.parts and file.name not in ("README.md", "curves.png")]
    assert {file.suffix for file in mine} >= {".safetensors", ".json", ".h5", ".npy", ".pt", ".jsonl", ".png", ".ply"}
    return mine


@pytest.mark.parametrize("flips", [150, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_noticed_every_time(ours, capsys, flips):
    assert main(["check", str(ours)]) == 0
    random, chosen = np.random.default_rng(0), files(ours)
    for turn in range(flips):
        file = chosen[turn % len(chosen)]
        whole = file.read_bytes()
        damaged = bytearray(whole)
        place = int(random.integers(8 * len(whole)))
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        try:
            name = file.relative_to(ours).as_posix()
            assert main(["check", str(ours / name.split("/")[0])]) == 1, (name, place)
            load = next((load for start, load in LOADERS.items() if name.startswith(start)), None)
            if load is not None:
                with pytest.raises(LocusError):
                    load(file)
        finally:
            file.write_bytes(whole)
    capsys.readouterr()
    assert main(["check", str(ours)]) == 0
    printed = capsys.readouterr().out
    print(f"{flips} of {flips} flipped bits noticed, in {len(chosen)} files")
    assert f"{ours / 'map'} (map): 4 sound\n" in printed
    assert "no checksum" not in printed.replace(f"{ours / 'room'}: 1 no checksum", "")


def test_check_names_what_is_damaged_and_exits_with_1(ours, tmp_path, capsys):
    file = tmp_path / "f.h5"
    content = bytearray((ours / "f.h5").read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert main(["check", str(file), str(ours / "model")]) == 1
    printed = capsys.readouterr().out
    assert f"{file}: 1 damaged\n" in printed
    assert f"{file} is damaged: its content does not fit its checksum" in printed
    assert f"{ours / 'model'} (model): 2 sound\n" in printed


def test_check_of_what_is_not_ours_is_one_sentence(tmp_path, capsys):
    (tmp_path / "notes.txt").touch()
    assert main(["check", str(tmp_path)]) == 2
    assert "holds nothing that LoCUS writes" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().out


def test_files_of_earlier_versions_load_and_have_no_checksum(ours, tmp_path, capsys):
    model = tmp_path / "model"
    model.mkdir()
    with safe_open(ours / "model" / "model.safetensors", "pt") as file:
        save_file({name: file.get_tensor(name) for name in file.keys()}, model / "model.safetensors")  # noqa: SIM118
    config = json.loads((ours / "model" / "config.json").read_text())
    del config["checksum"]
    (model / "config.json").write_text(json.dumps(config, indent=2))
    assert LoCUS.from_pretrained(model).fingerprint == LoCUS.from_pretrained(ours / "model").fingerprint
    features = bytearray((ours / "f.h5").read_bytes())
    features[64:128] = bytes(64)
    (tmp_path / "f.h5").write_bytes(features)
    open_features(tmp_path / "f.h5").close()
    np.save(tmp_path / "tokens.npy", TOKENS)
    assert np.array_equal(read_arrays([tmp_path / "tokens.npy"], np.float16, TOKENS.shape)[0], TOKENS)
    assert main(["check", str(tmp_path)]) == 0
    assert f"{model} (model): 2 no checksum\n" in capsys.readouterr().out


def test_what_comes_with_the_package_has_checksums(capsys):
    shipped = [str(folder) for folder in MODELS.values()]
    assert main(["check", *shipped, str(SHIPPED), str(CURVES), str(FITTED)]) == 0
    assert "no checksum" not in capsys.readouterr().out


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_numbers_are_refused(ours, tmp_path, value):
    model = LoCUS.from_pretrained(ours / "model")
    with torch.no_grad():
        next(model.head.parameters()).view(-1)[3] = value
    model.save_pretrained(tmp_path / "model")
    with pytest.raises(LocusError, match="weights that are not numbers"):
        LoCUS.from_pretrained(tmp_path / "model")
    probe = Probe.load(ours / "probe.safetensors")
    replace(probe, bias=torch.full_like(probe.bias, value)).save(tmp_path / "probe.safetensors")
    with pytest.raises(LocusError, match="weights that are not numbers"):
        Probe.load(tmp_path / "probe.safetensors")


def test_an_edited_file_says_how_the_edit_is_kept(ours, tmp_path):
    file = tmp_path / "config.json"
    file.write_text((ours / "model" / "config.json").read_text().replace('"kappa": 50.0', '"kappa": 60.0'))
    (tmp_path / "model.safetensors").write_bytes((ours / "model" / "model.safetensors").read_bytes())
    with pytest.raises(LocusError, match="if you have edited it, delete its checksum"):
        LoCUS.from_pretrained(tmp_path)
    file.write_text("\n".join(line for line in file.read_text().splitlines() if "checksum" not in line))
    assert LoCUS.from_pretrained(tmp_path).kappa == 60.0


def test_the_files_of_a_run_are_among_them(ours):
    assert {ours / "run" / name for name in (SETTINGS, METRICS, LAST)} <= set(files(ours))
