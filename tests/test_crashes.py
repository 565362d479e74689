"""The program is gone at every single operation on files: what was there before is there, or what was to come."""

import itertools
import os
import shutil
import warnings

import h5py
import numpy as np
import pytest
import torch

from locus.features.feature_file import FeatureFile, Header, open_features
from locus.files import atomic_folder, still_sound
from locus.landmarks import LandmarkMap
from locus.training.checkpoints import State, load_state, save_state
from tests.crashing import crashed
from tests.landmarks import places
from tests.scenes import room

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The disk itself is not what dies here, and to wait for it takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def content(folder):
    return {name: (folder / name).read_bytes() for name in names(folder) if (folder / name).is_file()}


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """Two maps with points, and the folders that they are saved to."""
    model = places.model((0.15, 0.3))
    root = tmp_path_factory.mktemp("maps")
    made = {}
    for count in (2, 3):
        seen = places.seen(places.scene(room.shots(12)[:count]), scales=2)
        world = LandmarkMap.build(model, seen, most=6, detector=places.Scattered(40))
        made[count] = (world, content(world.save(root / str(count))))
    return made


def test_a_map_is_the_one_before_or_the_new_one_with_all_that_belongs_to_it(maps, tmp_path):
    (before, old), (after, new) = maps[2], maps[3]
    seen = set()
    for fatal in itertools.count():
        folder = tmp_path / str(fatal)
        before.save(folder)
        gone = crashed(fatal, lambda folder=folder: after.save(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # points that are missing
            found = len(LandmarkMap.load(folder).frames)
        there = content(folder)
        whole = {name: bytes_ for name, bytes_ in there.items() if name in (old if found == 2 else new)}
        assert whole == (old if found == 2 else new), fatal
        after.save(folder)
        assert content(folder) == new, fatal
        seen.add(found)
        if not gone:
            break
    print(f"gone at each of {fatal} operations: a map that replaces another")
    assert fatal > 30
    assert seen == {2, 3}


@pytest.mark.slow
def test_a_new_map_is_not_there_or_complete_once_it_was_opened(maps, tmp_path):
    world, whole = maps[2]
    for fatal in itertools.count():
        folder = tmp_path / str(fatal)
        gone = crashed(fatal, lambda folder=folder: world.save(folder))
        if (folder / "map.safetensors").exists():
            LandmarkMap.load(folder)
            there = {name: bytes_ for name, bytes_ in content(folder).items() if not name.startswith(".")}
            assert there == whole, fatal
        if not gone:
            break
    print(f"gone at each of {fatal} operations: a new map")


def test_a_checkpoint_is_the_one_before_or_the_new_one(tmp_path):
    def state(step):
        return State(step, {"weight": torch.full((50, 50), float(step))}, {}, 0.5, 0, [1.0])

    path = tmp_path / "last.pt"
    save_state(state(1), path)
    seen = set()
    for fatal in itertools.count():
        gone = crashed(fatal, lambda: save_state(state(2), path))
        found = load_state(path)
        assert torch.equal(found.head["weight"], torch.full((50, 50), float(found.step)))
        seen.add(found.step)
        save_state(state(1), path)
        if not gone:
            break
    print(f"gone at each of {fatal} operations: a checkpoint")
    assert fatal > 5
    assert seen == {1, 2}
    assert names(tmp_path) == ["last.pt"]


HEADER = Header("a model", "1234", (0.2,), "dense", 0)


def add(path, numbers):
    with FeatureFile(path, HEADER) as file:
        for number in numbers:
            file.write(f"image {number}", np.full((1, 6, 8, 16), number, np.float16), (80, 60), str(number))
            file.commit()


def stored(path):
    with open_features(path) as file:
        for name, group in file.items():
            assert np.array_equal(group["features"][:], np.full((1, 6, 8, 16), int(name[6:]), np.float16))
        return set(file)


def test_a_feature_file_has_all_that_was_committed_and_is_whole(tmp_path):
    whole = tmp_path / "whole.h5"
    add(whole, range(2))
    counts = set()
    for fatal in itertools.count():
        folder = tmp_path / str(fatal)
        folder.mkdir()
        path = folder / "f.h5"
        shutil.copy(whole, path)
        gone = crashed(fatal, lambda path=path: add(path, (2, 3)))
        found = stored(path)  # which also verifies its checksum
        counts.add(len(found))
        assert {"image 0", "image 1"} <= found
        add(path, (2, 3))
        assert stored(path) == {f"image {number}" for number in range(4)}
        assert names(folder) == ["f.h5"], fatal
        if not gone:
            break
    print(f"gone at each of {fatal} operations: a feature file that grows")
    assert fatal > 30
    assert counts == {2, 3, 4}


@pytest.mark.slow
def test_a_new_feature_file_is_not_there_or_whole(tmp_path):
    path = tmp_path / "f.h5"
    for fatal in itertools.count():
        gone = crashed(fatal, lambda: add(path, (1,)))
        if path.exists():
            assert stored(path) <= {"image 1"}
        add(path, (1,))
        assert names(tmp_path) == ["f.h5"], fatal
        path.unlink()
        if not gone:
            break
    print(f"gone at each of {fatal} operations: a new feature file")


def test_a_folder_is_not_there_or_whole(tmp_path):
    def write():
        with atomic_folder(tmp_path / "scene") as folder:
            (folder / "images").mkdir()
            (folder / "images" / "a.png").write_bytes(b"picture" * 100)

    for fatal in itertools.count():
        gone = crashed(fatal, write)
        if (tmp_path / "scene").exists():
            assert still_sound(tmp_path / "scene") == {"images/a.png": True}
            shutil.rmtree(tmp_path / "scene")
        write()
        assert names(tmp_path) == ["scene", "scene/checksums.json", "scene/images", "scene/images/a.png"], fatal
        shutil.rmtree(tmp_path / "scene")
        if not gone:
            break
    print(f"gone at each of {fatal} operations: a scene's folder")
    assert fatal > 10


def test_hdf5_itself_sees_a_flipped_bit_of_the_features(tmp_path):
    path = tmp_path / "f.h5"
    add(path, (1,))
    content = bytearray(path.read_bytes())
    place = content.find(np.full(400, 1, np.float16).tobytes())
    content[place + 100] ^= 4
    path.write_bytes(content)
    with h5py.File(path) as file, pytest.raises(OSError, match="filter returned failure"):
        file["image 1/features"][:]
