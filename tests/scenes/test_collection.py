"""Paths, patterns and lists become scenes."""

import pytest

from locus.errors import SceneError
from locus.scenes.collection import find_scenes


def test_a_file_that_tells_about_a_folder_beside_it_is_no_scene(tmp_path):
    house = tmp_path / "house-000007"
    house.mkdir()
    about = house.with_suffix(".json")
    about.write_text("{}")
    assert find_scenes([house, about]) == [house]  # as a shell expands house-*
    assert find_scenes([str(tmp_path / "house-*")]) == [house]  # and as a quoted pattern is expanded


def test_a_list_names_folders_beside_itself(tmp_path):
    (tmp_path / "scenes.txt").write_text("# two of them\nkitchen\n\nhall\nkitchen\n")
    assert find_scenes([tmp_path / "scenes.txt"]) == [tmp_path / "kitchen", tmp_path / "hall"]


def test_a_pattern_that_matches_nothing_is_one_sentence(tmp_path):
    with pytest.raises(SceneError, match="matches nothing"):
        find_scenes([tmp_path / "house-*"])
