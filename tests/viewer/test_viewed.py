import io
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from locus.geometry import pose_error
from locus.landmarks import MapError
from locus.model import LoCUS
from locus.scenes import load_scene
from locus.viewer.colouring import feature_colours, landmark_colours
from locus.viewer.locating import assumed_camera, locate_frame, locate_image
from locus.viewer.picking import Hit
from locus.viewer.viewed import ViewedScene
from tests.scenes import layouts, room


def test_a_map_is_built_where_none_is_given_and_leaves_a_frame_to_localize(viewed):
    assert viewed.left_out == [5]
    assert len(viewed.world.frames) == 11
    assert "built for this page from 11 of 12 frames" in viewed.about_map


def test_a_scene_in_which_no_spot_is_seen_twice_has_no_map_and_says_why(tmp_path, model, cache):
    layouts.nerfstudio(tmp_path, room.shots(1))
    viewed = ViewedScene.open(model, load_scene(tmp_path), cache=cache)
    assert viewed.world is None
    assert "no landmarks" in viewed.about_map
    assert len(viewed.landmarks(0)) == 0
    assert len(feature_colours(viewed, 0)[1]) == len(landmark_colours(viewed, 0, "score")) == 0


def test_a_map_of_another_model_is_refused(viewed, room_folder, cache):
    other = LoCUS("classic", head="identity", radii=(0.3,))
    with pytest.raises(MapError, match="build the map again"):
        ViewedScene.open(other, load_scene(room_folder), viewed.world, cache=cache)


def test_a_map_by_another_name_is_taken_with_a_warning(viewed, room_folder, model, cache):
    renamed = replace(viewed.world, environments=("first",))
    opened = ViewedScene.open(model, load_scene(room_folder), renamed, cache)
    assert opened.warning.startswith("The map given is of first, and this scene is room. If these are two environments")
    assert viewed.warning == ViewedScene.open(model, load_scene(room_folder), viewed.world, cache).warning == ""


def test_a_map_of_several_other_places_is_refused(viewed, room_folder, model, cache):
    with pytest.raises(MapError, match="room: the map has first, second"):
        ViewedScene.open(model, load_scene(room_folder), replace(viewed.world, environments=("first", "second")), cache)


def test_what_is_clicked_gives_its_own_feature(viewed):
    rows, columns = viewed.seen.grid
    at = ((1 + 0.5) / columns, (2 + 0.5) / rows)  # the centre of a patch
    assert torch.allclose(viewed.query(Hit("image", 4, 1.0, at), 0), viewed.seen.features[0, 4, 2, 1], atol=1e-6)
    landmark = viewed.query(Hit("landmark", 3, 1.0), 0)
    assert np.allclose(landmark, viewed.landmarks(0).embedding[3])
    point = viewed.query(Hit("point", 200, 1.0), 0)
    row, pixel = viewed.cloud.frame[200], viewed.cloud.pixel[200]
    (width, height), (y, x) = viewed.size, divmod(int(pixel), viewed.size[0])
    same = viewed.query(Hit("image", int(row), 1.0, ((x + 0.5) / width, (y + 0.5) / height)), 0)
    assert torch.allclose(point, same)


def test_what_is_clicked_is_described(viewed):
    assert viewed.described(Hit("image", 4, 1.0, (0.5, 0.5)), 0) == "Pixel (40, 30) of frame 000004"
    assert viewed.described(Hit("landmark", 0, 1.0), 0).startswith("Landmark 0, score 0.")
    assert viewed.described(Hit("point", 0, 1.0), 0).endswith("from frame 000000")


def test_like_features_have_like_colours_in_cloud_and_landmarks(viewed):
    points, landmarks = feature_colours(viewed, 0)
    assert points.shape == viewed.cloud.points.shape
    assert len(landmarks) == len(viewed.landmarks(0))
    (row, y, x), (width, height), (rows, columns) = (2, 1, 3), viewed.size, viewed.seen.grid
    pixel_y, pixel_x = np.divmod(viewed.cloud.pixel, width)
    of_patch = (viewed.cloud.frame == row) & (pixel_y * rows // height == y) & (pixel_x * columns // width == x)
    assert len(np.unique(points[of_patch], axis=0)) == 1


def test_scores_and_classes_have_colours(viewed):
    by_score = landmark_colours(viewed, 0, "score").astype(int)
    scores = viewed.landmarks(0).score
    assert by_score[scores.argmax()].sum() > by_score[scores.argmin()].sum()  # yellow is lighter than dark blue
    assert landmark_colours(viewed, 0, "class").shape == by_score.shape


def test_a_frame_is_localized_and_compared_with_its_pose(known):
    located = locate_frame(known, 5)
    said = r"at \(.*\) m ± 0\.\d\d m: \d+ of \d+ matches with \w+ agree"
    trust = r"(, right to 0\.1 m and 5° with probability [01]\.\d\d)?"  # of kinds of poses that a curve was fitted to
    assert re.match(rf"Frame 000005 was taken in room {said}{trust}\.", located.sentence)
    centimetres, degrees = map(float, re.search(r"pose by ([\d.]+) cm and ([\d.]+)°", located.sentence).groups())
    assert centimetres < 10
    assert degrees < 2
    starts, ends = located.lines(known, 0.3).transpose(1, 0, 2)
    assert len(starts) == located.location.agreeing.sum() > 100
    assert np.linalg.norm(starts - known.seen.frame(5).world_from_camera[:3, 3], axis=1).max() < 1
    by_points = located.location.how == "points"
    positions = known.world.points.position if by_points else known.landmarks(0).position
    assert set(map(tuple, ends)) <= set(map(tuple, positions.astype(ends.dtype)))


def test_an_image_file_is_localized_and_one_of_elsewhere_is_not_here(known):
    frame = known.seen.frame(5)
    located = locate_image(known, "there.png", png(frame.image))
    assert located.sentence.startswith("there.png was taken in room")
    metres, degrees = pose_error(located.location.world_from_camera, frame.world_from_camera)
    assert metres < 0.1
    assert degrees < 3
    elsewhere = locate_image(known, "elsewhere.png", png(frame.image[:, ::-1]))
    assert elsewhere.sentence.startswith("elsewhere.png is not here")


def png(image):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return file.getvalue()


def test_a_file_that_is_no_image_is_named(viewed):
    with pytest.raises(Exception, match=r"^notes\.txt is not an image that can be read"):
        locate_image(viewed, "notes.txt", b"hello")


def test_an_image_of_the_scenes_shape_gets_the_scenes_lens(viewed):
    own = viewed.seen.frame(0).camera
    camera, sentence = assumed_camera(own, 160, 120)
    assert camera == own.resized(160, 120)
    assert "lens of the scene" in sentence
    turned, sentence = assumed_camera(own, 60, 80)
    assert (turned.width, turned.fx, turned.fy, turned.cx) == (60, own.fx, own.fx, 30)
    assert "another shape" in sentence
