"""Every block of Python in the README and the docs runs."""

import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
import transformers
import trimesh
import uvicorn

import locus
from locus.errors import WeightsError
from locus.geometry import pose_error
from locus.ports import bound
from locus.serve.endpoints import app_of
from locus.serve.served_maps import ServedMaps
from locus.serve.service import Service
from locus.tasks.image_features import frame_features
from tests import networks
from tests.pages import DOCS, ROOT, indented_blocks, name_of, python_blocks
from tests.scenes import layouts, room

PYTHON = re.compile(r"import \w|from [\w.]+ import |\w+ = (locus\.|[A-Z]\w+\()")  # how a block of Python begins

pytestmark = pytest.mark.usefixtures("little_light")

# Blocks that are not run: page, what the block begins with, why.
NOT_RUN = {
    ("backbones.md", "model = locus.LoCUS.from_authors("): "needs the authors' file; tests/test_authors.py writes such",
}


def run(page: Path, names: dict[str, Any], replaced: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """Run the blocks of a page, in order and in one module."""
    for number, block in enumerate(python_blocks(page)):
        if not any(name_of(page) == of and block.startswith(begin) for of, begin in NOT_RUN):
            text = block.replace(*replaced) if replaced[0] else block
            exec(compile(text, f"{page.name}, block {number}", "exec"), names)
    return names


@pytest.fixture(scope="module")
def one_folder(tmp_path_factory):
    """A reader tries one example after another where they are: none may be in another's way."""
    return tmp_path_factory.mktemp("one_folder")


@pytest.fixture(autouse=True)
def there(one_folder, monkeypatch):
    monkeypatch.chdir(one_folder)
    monkeypatch.setenv("LOCUS_CACHE", str(one_folder / "cache"))


@pytest.mark.usefixtures("small_weights")
def test_the_readmes_example_runs_and_finds_the_camera(monkeypatch):
    monkeypatch.delenv("LOCUS_CACHE")
    told = run(ROOT / "README.md", {})
    assert told["features"].shape == (3, 18, 22, 64)
    metres, degrees = pose_error(told["found"].world_from_camera, told["query"].world_from_camera)
    assert metres < 0.5
    assert degrees < 10


def test_the_example_of_generated_houses_runs():
    assert run(ROOT / "docs" / "houses.md", {})["frame"].depth.max() > 1


def test_the_example_of_keypoints_runs():
    try:
        locus.keypoints.glue("xfeat")
    except WeightsError as error:
        pytest.skip(str(error))
    image = room.shots(1)[0].image
    model = locus.LoCUS("classic", radii=(0.2, 0.5), head="linear", dimension=16)
    told = run(ROOT / "docs" / "keypoints.md", {"image": image, "other": image[:, 8:].copy(), "model": model})
    assert told["fused"].descriptors.shape == (len(told["found"]), 64 + 2 * 16)
    assert len(told["rows"]) == len(told["scores"]) > 0


def python_page(folder: Path) -> dict[str, Any]:
    """What docs/python.md leaves behind: two houses, a run, a map."""
    told = run(ROOT / "docs" / "python.md", {})
    assert told["inspection"].sound
    assert told["summary"].finished
    assert len(told["world"]) > 0
    assert told["location"].here or told["location"].reason
    assert told["found"][0].score >= told["found"][-1].score
    assert not told["outcome"].failures
    assert (folder / "tour" / "report" / "report.html").is_file()
    return told | {"folders": [folder / house for house in told["folders"]], "run": folder / "tour" / "run"}


def backbones_page(told: dict[str, Any], folder: Path) -> None:
    config = transformers.Dinov2Config(**networks.DEEP | {"num_hidden_layers": 12}, image_size=56, patch_size=14)
    transformers.Dinov2Model(config).save_pretrained(folder / "tiny")
    images = torch.zeros(1, 3, 56, 70, dtype=torch.uint8)
    names = run(
        ROOT / "docs" / "backbones.md",
        {"images": images, "image": told["frame"].image},
        ('"dinov2-small"', repr(str(folder / "tiny"))),
    )
    assert names["features"].shape[0] == 2
    assert names["model"].radii == (0.2, 0.8)


def data_page(told: dict[str, Any], folder: Path) -> None:
    shutil.copytree(told["folders"][0], folder / "path" / "to" / "scene")
    assert len(run(ROOT / "docs" / "data.md", {})["scene"]) == 12


def extend_page(told: dict[str, Any], folder: Path) -> None:
    names = run(ROOT / "docs" / "extend.md", {"house": told["folders"][1]})
    names = run(ROOT / "docs" / "extend-evaluation.md", names)
    assert np.array_equal(names["scene"][0].depth, np.full((48, 64), 2, np.float32))
    assert names["features"].shape == (1, 3, 4, 3)
    assert [part.method for part in names["outcome"].parts] == ["height", "ground truth"]


def maps_page(told: dict[str, Any], folder: Path) -> None:
    shutil.copytree(told["folders"][0], folder / "flat", dirs_exist_ok=True)
    query = told["query"]
    known = {"image": query.image, "camera": query.camera}
    names = run(ROOT / "docs" / "maps.md", known, ('"locus-small"', repr(str(told["run"]))))
    assert names["location"].here or names["location"].reason
    assert len(locus.LandmarkMap.load("maps/flat")) == len(names["world"])


def many_maps_page(told: dict[str, Any], folder: Path) -> None:
    told["world"].save(folder / "maps" / "house")
    known = {"image": told["query"].image, "camera": told["query"].camera, "model": told["model"]}
    names = run(ROOT / "docs" / "many-maps.md", known)
    assert names["environment"].max() == 0
    assert names["row"].max() < len(told["world"])
    assert names["location"].here or names["location"].reason


def sessions_page(told: dict[str, Any], folder: Path) -> None:
    for name in ("monday", "friday"):
        shutil.copytree(told["folders"][0], folder / name, dirs_exist_ok=True)
    names = run(ROOT / "docs" / "sessions.md", {}, ('"locus-small"', repr(str(told["run"]))))
    truth = [frame.world_from_camera for frame in names["friday"]]
    assert np.abs(np.stack(list(names["poses"].values())) - truth).max() < 0.05


def changes_page(told: dict[str, Any], folder: Path) -> None:
    sessions_page(told, folder)  # the same recordings under the same names
    names = run(ROOT / "docs" / "changes.md", {}, ('"locus-small"', repr(str(told["run"]))))
    assert names["found"].changes == []  # friday is a copy of monday
    assert len(names["world"].frames) == 2 * len(names["found"].world.frames)


def graph_page(told: dict[str, Any], folder: Path) -> None:
    shutil.copytree(told["folders"][0], folder / "flat", dirs_exist_ok=True)
    names = run(ROOT / "docs" / "graph.md", {"photo": told["frame"].image}, ('"locus-small"', repr(str(told["run"]))))
    assert names["room"].kind == "room"
    assert len(names["read"]) == len(names["graph"].places)


def growing_page(told: dict[str, Any], folder: Path) -> None:
    scene = locus.load_scene(told["folders"][0])
    robot = [(each.name, each.image, each.depth, each.camera, each.world_from_camera) for each in scene]
    names = run(ROOT / "docs" / "growing.md", {"robot": robot}, ('"locus-small"', repr(str(told["run"]))))
    assert names["world"].frame_names == tuple(frame.name for frame in scene)
    assert len(names["world"]) > 0


def matching_page(told: dict[str, Any], folder: Path) -> None:
    names = {"model": told["model"]}
    for letter, frame in {"a": told["a"], "b": told["b"]}.items():
        names[f"image_{letter}"] = cv2.resize(frame.image, (640, 480))
        names[f"depth_{letter}"] = cv2.resize(frame.depth, (640, 480), interpolation=cv2.INTER_NEAREST)
        names[f"camera_{letter}"] = frame.camera.resized(640, 480)
    run(ROOT / "docs" / "matching.md", names)
    assert names["pose"].solver == "3d-3d"


def objective_page(told: dict[str, Any], folder: Path) -> None:
    names = {name: told[name] for name in ("positions", "frames", "landmarks")} | {"torch": torch}
    features = told["seen"].features[0].flatten(0, 2).clone().requires_grad_()
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=0, world_size=1)
    try:
        run(
            ROOT / "docs" / "explained" / "objective.md", names | {"features": features, "environments": told["places"]}
        )
    finally:
        torch.distributed.destroy_process_group()
    assert features.grad is not None
    assert features.grad.abs().max() > 0


def realsense_page(told: dict[str, Any], folder: Path) -> None:
    (folder / "walk").mkdir()
    layouts.tum(folder / "walk", room.shots(4))
    (folder / "walk" / "calibration.txt").write_text("60 60 32 24\n")
    listed = {name: (folder / "walk" / name).read_text().split()[3:] for name in ("rgb.txt", "depth.txt")}
    for name in listed:
        (folder / "walk" / name).unlink()
    run(ROOT / "docs" / "capture" / "realsense.md", {})
    assert {name: (folder / "walk" / name).read_text().split() for name in listed} == listed  # but for a comment
    assert len(locus.load_scene("walk")) == 4


def reference_page(told: dict[str, Any], folder: Path) -> None:
    names = run(ROOT / "docs" / "reference.md", told)
    assert names["features"].shape[0] == 2
    assert names["answer"].here or names["answer"].reason


def serve_page(told: dict[str, Any], folder: Path) -> None:
    """The client of the page, and a service over the map of docs/python.md."""
    service = Service(ServedMaps([told["world"].save(folder / "map")], told["model"]))
    cv2.imwrite("photo.jpg", told["query"].image[..., ::-1])
    server = uvicorn.Server(uvicorn.Config(app_of(service), log_config=None))
    with bound("127.0.0.1", 0) as taken:
        taken.listen()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            names = run(ROOT / "docs" / "serve.md", {}, ("127.0.0.1:8008", address))
        finally:
            server.should_exit = True
            thread.join()
    assert names["found"]["environment"] or names["found"]["reason"]


def index_table(told: dict[str, Any], folder: Path) -> None:
    """Every cell of the README's column "from Python", in order, with what it takes from the cells and pages before."""
    box = trimesh.creation.box((5, 4, 2.5)).subdivide().subdivide()
    box.invert()  # seen from inside
    box.export(folder / "mesh.ply")
    names = told | {
        "locus": locus,
        "path": told["folders"][0],
        "seed": 7,
        "mesh": folder / "mesh.ply",
        "folder": folder / "converted",
        "features_a": told["model"].features(told["a"].image),
        "features_b": told["model"].features(told["b"].image),
        "scenes": told["folders"][1:],
        "settings": replace(told["settings"], steps=1, validate_every=1),
        "image": told["query"].image,
        "camera": told["query"].camera,
        "feature": told["spot"],
        "images": frame_features(told["seen"]),
        "benchmark": locus.evaluation.Retrieval(frames_per_batch=4, batches=1, landmarks=16),
    }
    rows = re.findall(r"^\|.*\| (.*) \|$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    cells = [cell for row in rows[rows.index("from Python") + 1 :] for cell in re.findall(r"`([^`]+)`", row)]
    cells = [cell for cell in cells if "locus." in cell or "(" in cell]
    assert len(cells) == 18
    for cell in cells:
        exec(cell.replace('"dinov2-small", layer=7', '"classic"'), names)


# Pages whose blocks need something that docs/python.md made.
GO_ON: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "backbones.md": backbones_page,
    "capture/realsense.md": realsense_page,
    "data.md": data_page,
    "extend.md": extend_page,
    "graph.md": graph_page,
    "growing.md": growing_page,
    "many-maps.md": many_maps_page,
    "maps.md": maps_page,
    "changes.md": changes_page,
    "matching.md": matching_page,
    "explained/objective.md": objective_page,
    "reference.md": reference_page,
    "serve.md": serve_page,
    "sessions.md": sessions_page,
    "index.md": index_table,
}


def test_the_python_page_runs_and_so_do_those_that_go_on_from_it(one_folder):
    """One test, because what the first page makes takes most of the time."""
    told = python_page(one_folder)
    for go_on in GO_ON.values():
        go_on(told, one_folder)


def test_no_block_of_python_is_left_out():
    with_blocks = {name_of(page) for page in DOCS if python_blocks(page)}
    others = {"README.md", "extend-evaluation.md", "houses.md", "keypoints.md", "python.md"}
    assert with_blocks == {*GO_ON, *others} - {"index.md"}
    for page in DOCS:
        for block in indented_blocks(page):
            assert not PYTHON.match(block), f"{name_of(page)}: fence this with ```python, so that it is run: {block}"
    for page, begin in NOT_RUN:
        assert any(block.startswith(begin) for block in python_blocks(ROOT / "docs" / page)), f"{page}: {begin}"
