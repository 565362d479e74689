"""Bags that are not what they claim: one sentence, exit code 2, nothing written."""

import builtins
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Writer

import locus
from locus.cli import main
from locus.errors import LocusError, SceneError
from locus.scenes.formats import rosbag_storage
from tests.scenes import bags, room


@pytest.fixture(scope="module", params=["ros1", "ros1-lz4", "db3", "mcap-file", "mcap-zstd"])
def sound(request, tmp_path_factory) -> Path:
    """The file of a bag that can be read."""
    path = bags.walk(tmp_path_factory.mktemp("sound"), request.param, room.shots(3))
    return path / "walk.mcap" if path.is_dir() else path


def refused(path: Path, capsys, monkeypatch) -> str:
    """What the command line says; it must have written nothing."""
    before = sorted(path.parent.rglob("*"))
    monkeypatch.chdir(path.parent)
    assert main(["inspect", str(path)]) == 2
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    assert sorted(path.parent.rglob("*")) == before
    return said


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9])
def test_a_truncated_bag_is_one_sentence(sound, share, tmp_path, capsys, monkeypatch):
    cut = tmp_path / sound.name
    data = sound.read_bytes()
    cut.write_bytes(data[: int(len(data) * share)])
    said = refused(cut, capsys, monkeypatch)
    assert str(cut) in said
    assert "no bag that can be read" in said or "damaged" in said


@pytest.mark.parametrize("name", ["walk.bag", "walk.mcap", "walk.db3"])
@pytest.mark.parametrize("data", [b"", b"not a bag at all" * 100, b"#ROSBAG V2.0\n", b"\x89MCAP0\r\n", b"\0" * 5000])
def test_what_is_no_bag_is_one_sentence(name, data, tmp_path, capsys, monkeypatch):
    path = tmp_path / name
    path.write_bytes(data)
    said = refused(path, capsys, monkeypatch)
    assert "is no bag that can be read" in said


def test_a_folder_whose_files_are_missing_or_nonsense_is_one_sentence(tmp_path, capsys, monkeypatch):
    path = bags.walk(tmp_path, "mcap", room.shots(2))
    text = (path / "metadata.yaml").read_text()
    for changed in ("", "[1, 2", "rosbag2_bagfile_information: 3", text.replace("walk.mcap", "../../etc/walk.mcap2")):
        (path / "metadata.yaml").write_text(changed)
        assert "is no bag that can be read" in refused(path, capsys, monkeypatch)
    (path / "metadata.yaml").write_text(text.replace("compression_mode: ''", "compression_mode: FILE"))
    assert "rosbags-convert --src" in refused(path, capsys, monkeypatch)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bytes_are_read_or_refused_in_one_sentence(sound, data, tmp_path):
    broken = bytearray(sound.read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(broken) - 1), min_size=1, max_size=8)):
        broken[position] = data.draw(st.integers(0, 255))
    path = tmp_path / sound.name
    path.write_bytes(broken)
    said = ""
    try:
        for frame in locus.load_scene(path):
            assert frame.image.shape == (room.HEIGHT, room.WIDTH, 3)
            assert np.isfinite(frame.depth).all()
            assert np.isfinite(frame.world_from_camera).all()
    except LocusError as error:
        said = str(error)
    assert "\n" not in said


def test_of_a_bag_cut_short_at_its_end_what_is_left_is_read(tmp_path):
    path = bags.walk(tmp_path, "db3", room.shots(3))
    path.write_bytes(path.read_bytes()[:-200])
    scene = locus.load_scene(path)
    assert 0 < len(scene) <= 3
    assert len(scene) == 3 or "damaged message" in " ".join(scene.skipped.values())


def test_a_chunk_that_unpacks_to_more_than_any_should_is_refused(tmp_path, monkeypatch):
    shots = room.shots(3)
    for shot in shots:
        shot.image[:], shot.depth[:] = 7, 2.0
    path = bags.walk(tmp_path, "mcap-zstd", shots)
    monkeypatch.setattr(rosbag_storage, "MAX_MESSAGE", 30_000)
    with pytest.raises(SceneError, match="a chunk is larger than"):
        locus.load_scene(path)


def test_a_message_that_is_larger_than_any_should_be_is_refused(tmp_path, monkeypatch):
    scene = locus.load_scene(bags.walk(tmp_path, "ros1", room.shots(3)))
    monkeypatch.setattr(rosbag_storage, "MAX_MESSAGE", 10_000)
    with pytest.raises(LocusError, match="a message of /camera/color/image_raw is larger than"):
        scene[0].image  # noqa: B018


def test_an_index_without_messages_is_one_sentence(tmp_path):
    """An MCAP whose summary lists chunks but not where the messages are."""
    path = bags.walk(tmp_path, "mcap-file", room.shots(2))
    data = path.read_bytes()
    (summary,) = struct.unpack("<Q", data[-28:-20])
    emptied, position = bytearray(data[:summary]), summary
    while data[position] not in (0x02, 0x0E):
        (size,) = struct.unpack_from("<Q", data, position + 1)
        record = data[position + 9 : position + 9 + size]
        if data[position] == 0x08:
            (length,) = struct.unpack_from("<I", record, 32)
            record = record[:32] + struct.pack("<I", 0) + record[36 + length :]
        emptied += struct.pack("<BQ", data[position], len(record)) + record
        position += 9 + size
    emptied += struct.pack("<BQQQI", 0x02, 20, summary, 0, 0) + data[-8:]
    path.write_bytes(emptied)
    with pytest.raises(SceneError, match="has no index of its messages"):
        locus.load_scene(path)


def test_a_bag_that_is_compressed_as_a_whole_is_named(tmp_path):
    path = tmp_path / "walk"
    writer = Writer(path, version=9)
    writer.set_compression(CompressionMode.FILE, CompressionFormat.ZSTD)
    writer.open()
    writer.close()
    with pytest.raises(SceneError, match="compressed as a whole; unpack it: rosbags-convert"):
        locus.load_scene(path)


def test_without_rosbags_the_sentence_says_what_to_install(tmp_path, monkeypatch):
    path = bags.walk(tmp_path, "ros1", room.shots(2))
    imported = builtins.__import__

    def without(name, *rest):
        if name.startswith("rosbags"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SceneError, match=r"^bags need the package rosbags: .* -m pip install .*\[capture\]'?$"):
        locus.load_scene(path)


def test_frames_may_be_read_by_threads_at_once(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    shots = room.shots(6)
    scene = locus.load_scene(bags.walk(tmp_path, "ros1-lz4", shots))
    with ThreadPoolExecutor(8) as pool:
        images = list(pool.map(lambda k: scene[k % 6].image, range(60)))
    for k, image in enumerate(images):
        np.testing.assert_array_equal(image, shots[k % 6].image)


def test_a_bag_may_be_moved_away_while_it_is_open_or_named_by_a_link(tmp_path):
    shots = room.shots(2)
    path = bags.walk(tmp_path, "mcap-file", shots)
    link = tmp_path / "other.mcap"
    link.symlink_to(path)
    scene = locus.load_scene(link)
    assert scene.name == "other"
    shutil.rmtree(path.parent)
    np.testing.assert_array_equal(scene[1].image, shots[1].image)
