"""An index of maps against comparing with all, made at once, killed, grown, damaged; and the same in a database."""

import itertools
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from locus.cli import main
from locus.errors import LocusError
from locus.landmarks import LandmarkMap, MapError, database, disk_cells, indexing, merge
from locus.landmarks.indexing import build_index
from locus.landmarks.map_index import MapIndex, open_maps
from locus.tasks.localize import localize_features
from tests.crashing import crashed
from tests.landmarks import places
from tests.scenes import room
from tests.test_crashes import content

faiss = pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def kept(world, tmp_path_factory):
    """Folders of maps: the room, three others, and one of two environments whose landmarks come by turns."""
    root, random = tmp_path_factory.mktemp("maps"), np.random.default_rng(0)

    def other(name):
        values = random.normal(size=world.landmarks.mean.shape).astype(np.float32)
        return replace(world, landmarks=replace(world.landmarks, mean=values), environments=(name,))

    two = merge([other("a"), other("b")])
    order = random.permutation(len(two))
    parts = {name: getattr(two.landmarks, name)[order] for name in vars(two.landmarks)}
    two = replace(two, landmarks=type(two.landmarks)(**parts), sightings=two.sightings[:, order])
    made = {"room": world, "two": two} | {name: other(name) for name in ("c", "d", "e")}
    return [each.save(root / name) for name, each in made.items()]


@pytest.fixture
def shards(monkeypatch):
    """A shard has a hundred landmarks at most."""
    faiss.omp_set_num_threads(1)  # what was forked could not use threads
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # which takes most of the time
    monkeypatch.setattr(indexing, "SHARD", 100)


@pytest.fixture
def many(shards, monkeypatch):
    """A hundred are many."""
    for module in (disk_cells, indexing, database):
        monkeypatch.setattr(module, "EXACT", 100)
    for name, value in (("CODE", 32), ("ROTATION_ROUNDS", 1), ("CELLS_TRIED", 8)):
        monkeypatch.setattr(disk_cells, name, value)


def compared(index, asked):
    """Every landmark of every environment: number and similarity, the best first."""
    worlds = [index.environment(number) for number in range(len(index.environments))]
    numbers = np.concatenate([(number << 32) + np.arange(len(world)) for number, world in enumerate(worlds)])
    similarity = asked @ np.concatenate([world.landmarks.embedding for world in worlds]).T
    order = np.argsort(-similarity, axis=1)
    return np.take_along_axis(similarity, order, axis=1), numbers[order]


def asked_of(index):
    """A feature like some landmark of each environment."""
    random = np.random.default_rng(1)
    rows = np.stack([index.environment(number).landmarks.embedding[5] for number in range(len(index.environments))])
    rows = rows + 0.02 * random.normal(size=rows.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_few_landmarks_are_compared_exactly(kept, tmp_path):
    index = build_index(kept, tmp_path / "index")
    assert index.environments == ("room", "a", "b", "c", "d", "e")
    asked = asked_of(index)
    for k in (1, 7, len(index) + 5):
        similarity, number = index.search(asked, k)
        exact, best = compared(index, asked)
        assert number.shape == (len(asked), min(k, len(index)))
        assert np.allclose(similarity, exact[:, :k], atol=1e-5)
        assert np.array_equal(number[:, 0], best[:, 0])
    assert index.search(asked[:0], 3)[1].shape == (0, 3)


def test_many_landmarks_are_found_by_codes_in_cells(many, kept, tmp_path):
    index = build_index(kept, tmp_path / "index")
    asked = asked_of(index)
    similarity, number = index.search(asked, 10)
    exact, best = compared(index, asked)
    assert (number == best[:, :1]).any(axis=1).all()
    assert (np.diff(similarity) <= 0).all()
    assert abs(similarity[:, 0] - exact[:, 0]).max() < 0.2
    assert np.array_equal(np.sort(index.search(asked, 10**6)[1]), np.sort(best))  # more than the cells tried hold
    lists = sum(file.stat().st_size for file in (tmp_path / "index").glob("*.lists"))
    assert lists == len(index) * (32 + 8) + 20  # a code, a number; a checksum


def test_an_image_opens_only_the_maps_it_may_show(kept, tmp_path, world):
    for folder in kept:
        shutil.copytree(folder, tmp_path / folder.name)
    build_index([tmp_path / folder.name for folder in kept], tmp_path / "index")
    shutil.move(tmp_path, moved := tmp_path.with_name(f"{tmp_path.name} moved"))  # all together
    for name in ("two", "c", "d", "e"):
        shutil.rmtree(moved / name)
    shot = places.wanderer(1)[0]
    features = places.features(shot)
    index = open_maps(moved / "index")
    near = index.near(features, 1)
    assert near.environments == ("room",)
    there = localize_features(near, features, places.CAMERA, shot.depth.astype(np.float32))
    alone = localize_features(world, features, places.CAMERA, shot.depth.astype(np.float32))
    assert there.environment == "room"
    assert np.array_equal(there.world_from_camera, alone.world_from_camera)
    with pytest.raises(MapError, match="holds no map"):
        index.near(features)
    assert isinstance(open_maps(moved / "room"), LandmarkMap)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_operation_it_goes_on_and_gives_the_same_bytes(shards, kept, tmp_path):
    build_index(kept[:2], tmp_path / "whole")
    whole, kills = content(tmp_path / "whole"), 0
    for fatal in itertools.count(0, 3):  # a child in three is enough: they are many
        out = tmp_path / str(fatal)
        gone = crashed(fatal, lambda out=out: build_index(kept[:2], out))
        build_index(kept[:2], out)
        assert content(out) == whole
        if not gone:
            break
        kills += 1
    assert kills > 10


def test_more_maps_are_added_without_doing_the_others_again(many, kept, tmp_path):
    out = tmp_path / "index"
    build_index(kept[:3], out)
    before = {file.name: file.stat().st_ino for file in out.iterdir() if file.name.startswith(("trained", "shard"))}
    index = build_index(kept, out)
    after = {file.name: file.stat().st_ino for file in out.iterdir()}
    assert before.items() <= after.items()
    assert len([name for name in after if name.startswith("cells")]) == 2
    asked = asked_of(index)
    assert (index.search(asked, 10)[1] >> 32 == np.arange(6)[:, None]).any(axis=1).all()


def test_damage_is_noticed_before_it_is_used_and_mended_by_making_it_again(many, kept, tmp_path, capsys):
    index = build_index(kept, tmp_path / "index")
    asked, random, whole = asked_of(index), np.random.default_rng(0), content(index.folder)
    assert main(["check", str(index.folder)]) == 0
    for name, sound in whole.items():
        used = name.startswith(("cells", "index"))
        for at in random.integers(len(sound) - 20 * name.endswith(".lists"), size=3 if used else 1):
            flipped = bytes([sound[at] ^ 1 << random.integers(8)])
            (index.folder / name).write_bytes(sound[:at] + flipped + sound[at + 1 :])
            assert main(["check", str(index.folder)]) == 1
            if used:
                with pytest.raises(LocusError, match=r"damaged|again"):
                    MapIndex.load(index.folder).search(asked, 10**6)  # all cells
        (index.folder / name).write_bytes(sound[:-1])
        if used:
            with pytest.raises(LocusError):
                MapIndex.load(index.folder)
            (index.folder / name).write_bytes(sound)
    build_index(kept, index.folder)
    for name in whole:
        if name.startswith(("cells", "index")):
            (index.folder / name).write_bytes(b"half")
    build_index(kept, index.folder)
    assert content(index.folder) == whole


def test_a_folder_without_an_index_is_one_sentence(tmp_path):
    with pytest.raises(LocusError, match="holds no index"):
        MapIndex.load(tmp_path)


def test_a_scale_may_have_no_landmarks(tmp_path, capfd):
    seen = places.seen(places.scene(room.shots(6)), scales=2)
    built = LandmarkMap.build(places.model((0.15, 0.3)), seen)
    fine = built.landmarks.scale == 0
    parts = {name: getattr(built.landmarks, name)[fine] for name in vars(built.landmarks)}
    replace(built, landmarks=type(built.landmarks)(**parts), sightings=built.sightings[:, fine]).save(tmp_path / "map")
    index = build_index([tmp_path / "map"], tmp_path / "index")
    assert [index.search(built.landmarks.embedding[:3], 2, scale)[1].shape for scale in (0, 1)] == [(3, 2), (3, 0)]
    assert "WARNING" not in "".join(capfd.readouterr())  # of faiss, which wants 39 for a cell
    assert len(index.near(places.features(room.shots(1)[0], scales=2))) == len(index)


def test_what_does_not_fit_is_refused(kept, tmp_path, world, model, monkeypatch):
    out, changed = tmp_path / "index", tmp_path / "changed"
    with pytest.raises(MapError, match="at least one map"):
        build_index([], out)
    replace(world, environments=("c",)).save(changed)
    with pytest.raises(MapError, match="both have an environment c"):
        build_index([*kept, changed], out)
    replace(world, model="other", environments=("f",)).save(changed)
    with pytest.raises(MapError, match="different models"):
        build_index([*kept, changed], out)
    replace(world, environments=("f",)).save(changed)
    index = build_index([kept[0], changed], out)
    index.check(model)
    with pytest.raises(MapError, match="name the one that they were made with"):
        replace(index, model="other").check(model)
    for features, scale in ((np.zeros((2, 5), np.float32), 0), (np.zeros((2, places.DIMENSION), np.float32), 1)):
        with pytest.raises(MapError, match="scales 0 to 0 of features of 128"):
            index.search(features, 1, scale)
    with pytest.raises(MapError, match="not all finite"):
        index.search(np.full((1, places.DIMENSION), np.nan, np.float32))
    replace(world, environments=("g",)).save(changed)
    with pytest.raises(MapError, match="not the map that was indexed"):
        index.environment(1)
    (out / "index.json").write_text("{}")
    with pytest.raises(MapError, match="not an index of this LoCUS"):
        MapIndex.load(out)
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(LocusError, match=r"locus-features\[search\]"):
        build_index(kept, tmp_path / "none")


@pytest.mark.parametrize("least", [100_000, 100])
def test_a_database_is_searched_by_the_same_call(kept, tmp_path, monkeypatch, least):
    pytest.importorskip("lancedb")
    monkeypatch.setattr(database, "EXACT", least)  # above which it makes an index of its own
    index = build_index(kept, tmp_path / "index")
    stored = database.store(index, str(tmp_path / "database"))
    asked = asked_of(index)
    for k in (1, 5):
        similarity, number = stored.search(asked, k)
        exact, best = index.search(asked, k)
        assert np.array_equal(number[:, 0], best[:, 0])
        assert np.allclose(similarity[:, 0], exact[:, 0], atol=1e-5)
        assert number.shape == best.shape
        if least > len(index):
            assert np.allclose(similarity, exact, atol=1e-5)
    assert stored.search(asked[:1], 2)[1].shape == (1, 2)
    assert stored.search(asked[:0], 2)[1].shape == (0, 2)
    features = places.features(places.wanderer(1)[0])
    again = database.connected(index, str(tmp_path / "database"))
    assert again.near(features, 1).environments == ("room",)


def test_the_commands(tmp_path, capsys, monkeypatch):
    from tests.scenes import layouts

    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(8))
    words = [
        "map",
        f"{tmp_path}/room",
        "--model",
        "classic",
        "--out",
        f"{tmp_path}/maps/room",
        "--cache",
        f"{tmp_path}/c",
    ]
    assert main(words) == 0
    assert main(["index", f"{tmp_path}/maps/*", "--out", f"{tmp_path}/index"]) == 0
    printed = capsys.readouterr().out
    assert "1 environments of 1 maps" in printed
    assert "resizing" not in printed
    asked = [f"{tmp_path}/room:3", "--map", f"{tmp_path}/index", "--model", "classic"]
    assert main(["localize", *asked]) == 0
    assert main(["retrieve", *asked, "--count", "2"]) == 0
    assert "room  000003" in capsys.readouterr().out
    assert main(["index", f"{tmp_path}/nothing*", "--out", f"{tmp_path}/index"]) == 2
    assert "is no map, no list of maps" in capsys.readouterr().err
