"""A journaled file under every way of dying."""

import errno
import zlib

import h5py
import numpy as np
import pytest

import locus.features.journal
from locus.errors import DamagedError, LocusError
from locus.features.journal import CHECKSUM, MAGIC, OURS, PAGE, JournaledFile, journal_of, recover, verify_pages


class Killed(BaseException):
    """The process is gone: nothing may tidy up after it."""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", userblock_size=512):
        pass
    with path.open("r+b") as file:
        file.write(OURS.ljust(64))
    return path


def add(path, names):
    """Write one array per name, committing each."""
    disk = JournaledFile(path)
    with h5py.File(disk, "r+") as file:
        for name in names:
            file.create_group(f"folder/{name}")["values"] = np.full((50, 40), int(name), np.float32)
            file.flush()
            disk.commit()
    disk.close()


def stored(path):
    """Each array's number, by plain h5py, checked to be whole."""
    with h5py.File(path, "r") as file:
        found = {name: group["values"][:] for name, group in file.get("folder", {}).items()}
    for name, values in found.items():
        np.testing.assert_array_equal(values, np.full((50, 40), int(name)))
    return set(found)


def test_what_is_committed_is_there_for_plain_h5py(path):
    add(path, "12")
    add(path, "3")
    assert stored(path) == {"1", "2", "3"}
    assert {file.name for file in path.parent.iterdir()} == {path.name}


def test_bytes_are_those_of_a_plain_file(path):
    """Random reads, writes and cuts, against a bytearray."""
    rng = np.random.default_rng(0)
    plain = bytearray(path.read_bytes())
    disk = JournaledFile(path)
    for _ in range(300):
        start = int(rng.integers(CHECKSUM.stop, len(plain) + 50))
        data = rng.bytes(int(rng.integers(1, 9000)))
        disk.seek(start)
        disk.write(data)
        plain.extend(bytes(max(0, start + len(data) - len(plain))))
        plain[start : start + len(data)] = data
        start, count = int(rng.integers(0, len(plain))), int(rng.integers(1, 9000))
        disk.seek(start)
        assert disk.read(count) == plain[start : start + count]
        if rng.random() < 0.1:
            disk.commit()
            plain[CHECKSUM] = path.read_bytes()[CHECKSUM]
            assert path.read_bytes() == plain
            assert verify_pages(path)
    disk.close()


def test_killed_before_any_single_write_the_file_opens_with_all_commits(path, monkeypatch):
    """Every write to disk in turn is the one that does not happen, or happens by half."""
    original = path.read_bytes()
    whole_write, died = locus.features.journal._write, 0
    for half in (False, True):
        for fatal in range(1000):
            path.write_bytes(original)
            count = 0

            def write(file, data, fatal=fatal, half=half):
                nonlocal count
                count += 1
                if count > fatal:
                    if half and count == fatal + 1:
                        whole_write(file, data[: len(data) // 2])
                    raise Killed
                whole_write(file, data)

            monkeypatch.setattr(locus.features.journal, "_write", write)
            disk = JournaledFile(path)
            committed = []
            try:
                with h5py.File(disk, "r+") as file:
                    for name in "1234":
                        file.create_group(f"folder/{name}")["values"] = np.full((50, 40), int(name), np.float32)
                        file.flush()
                        disk.commit()
                        committed.append(name)
            except Killed:
                died += 1
            disk._open.close()  # as the system does
            monkeypatch.setattr(locus.features.journal, "_write", whole_write)
            recover(path)
            assert verify_pages(path) or not committed
            found = stored(path)
            assert set(committed) <= found <= set("1234")
            assert len(found) <= len(committed) + 1
            add(path, "9")
            assert stored(path) == found | {"9"}
            if count <= fatal:
                break
    assert died > 20


def test_a_journal_of_another_file_is_not_used(path):
    add(path, "1")
    disk = JournaledFile(path)
    with h5py.File(disk, "r+") as file:
        file["more"] = np.arange(5)
        file.flush()
        disk.commit()
        journal = journal_of(path).read_bytes()
    disk.close()
    other = path.with_name("other.h5")
    other.write_bytes(OURS.ljust(64, b"2") + bytes(64) + path.read_bytes()[128:])
    add(other, "2")
    before = other.read_bytes()
    journal_of(other).write_bytes(journal)
    recover(other)
    assert other.read_bytes() == before
    assert not journal_of(other).exists()


def test_a_full_disk_is_one_sentence_and_the_file_stays_as_it_was(path, monkeypatch):
    add(path, "1")
    before = path.read_bytes()

    def full(file, data):
        file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(locus.features.journal, "_write", full)
    with pytest.raises(LocusError, match=r"file\.h5 cannot grow: No space left"):
        add(path, "2")
    assert path.read_bytes() == before
    assert stored(path) == {"1"}


def test_two_writers_do_not_meet(path):
    disk = JournaledFile(path)
    for look in (JournaledFile, recover):
        with pytest.raises(LocusError, match="another process is writing"):
            look(path)
    disk.close()
    JournaledFile(path).close()


def test_every_flipped_bit_before_hdf5_s_own_is_noticed_and_nothing_is_cut_off(path):
    add(path, "12")
    whole = path.read_bytes()
    for place in range(8 * CHECKSUM.stop):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        for look in (verify_pages, JournaledFile):
            with pytest.raises(DamagedError):
                look(path)
        assert path.read_bytes() == damaged


def test_a_journal_with_a_place_outside_the_file_is_not_used(path):
    add(path, "1")
    before = path.read_bytes()
    body = before[:64] + (2**40).to_bytes(8, "little") + bytes(PAGE)
    journal_of(path).write_bytes(MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)
    recover(path)
    assert path.read_bytes() == before
