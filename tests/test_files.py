"""Files that are there whole or not at all."""

import pytest

from locus.files import atomic, clear_leftovers


def test_a_folder_in_a_files_place_is_named_before_anything_is_written(tmp_path):
    (tmp_path / "it.onnx").mkdir()
    with pytest.raises(IsADirectoryError) as error, atomic(tmp_path / "it.onnx"):
        pass
    assert error.value.filename == str(tmp_path / "it.onnx")
    assert [path.name for path in tmp_path.rglob("*")] == ["it.onnx"]


def test_leftovers_are_those_of_the_file_and_of_nothing_else(tmp_path):
    others = ["it[1].bin", ".it1.bin.abcdefgh", ".it[1].bin.mine", ".it[1].bin.abcdefgh.txt", "it[1].bin.abcdefgh"]
    for name in [*others, ".it[1].bin.abcdefgh", ".it[1].bin.0_zz9876"]:
        (tmp_path / name).touch()
    clear_leftovers([tmp_path / "it[1].bin", tmp_path / "nowhere" / "else"])
    assert {path.name for path in tmp_path.iterdir()} == set(others)
