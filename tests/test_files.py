"""Files that are there whole or not at all."""

import pytest

from locus.files import atomic


def test_a_folder_in_a_files_place_is_named_before_anything_is_written(tmp_path):
    (tmp_path / "it.onnx").mkdir()
    with pytest.raises(IsADirectoryError) as error, atomic(tmp_path / "it.onnx"):
        pass
    assert error.value.filename == str(tmp_path / "it.onnx")
    assert [path.name for path in tmp_path.rglob("*")] == ["it.onnx"]
