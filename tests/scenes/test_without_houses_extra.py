"""Without trimesh and Embree, the extra `houses`: everything but houses, rendering and Matterport3D's labels works, and
those say what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from locus.errors import to_install
from tests.scenes import layouts, room

WITHOUT = "import sys\nsys.modules['trimesh'] = sys.modules['embreex'] = None\n"

USE = """
import numpy as np
import locus, locus.scenes, locus.model, locus.landmarks, locus.tasks, locus.features, locus.training, locus.evaluation
scene = locus.load_scene(sys.argv[1])
model = locus.LoCUS("classic", head="identity", resolution=120)
frame = scene[0]
print(tuple(model.features(frame.image).shape))
world = locus.LandmarkMap.build(model, scene)
found = world.localize(model, frame.image, frame.camera, frame.depth)
print(np.linalg.norm(found.world_from_camera[:3, 3] - frame.world_from_camera[:3, 3]) < 0.2)
print({"locus.render.any_mesh", "locus.houses.generation"} & set(sys.modules))
"""

COMMAND = "from locus.cli import main\nsys.exit(main(sys.argv[1:]))\n"


def run(program: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, *words], capture_output=True, text=True, check=False
    )


def test_scenes_features_maps_and_localizing_work(folder):
    done = run(USE, folder)
    assert done.returncode == 0, done.stderr
    shape, near, loaded = done.stdout.splitlines()
    assert shape.startswith("(1, ")
    assert near == "True"
    assert loaded == "set()"


@pytest.mark.parametrize(
    "words", [["houses", "OUT"], ["render", "room.glb", "OUT"], ["convert", "SCENE", "--out", "OUT"]]
)
def test_what_needs_the_extra_names_it_in_one_sentence_and_writes_nothing(words, tmp_path):
    layouts.matterport(tmp_path / "data", room.shots(2))
    places = {"OUT": tmp_path / "out", "SCENE": tmp_path / "data"}
    done = run(COMMAND, *(places.get(word, word) for word in words))
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert to_install("houses") in done.stderr
    assert not (tmp_path / "out").exists()
