"""Furniture and photographs from a user's folders."""

import numpy as np
import pytest
import trimesh
from PIL import Image

from locus.errors import LocusError
from locus.houses.house import build
from locus.houses.outside import kind_of, load_models, load_textures


@pytest.fixture
def folder(tmp_path):
    """A sofa as OBJ in centimetres and a chair as GLB in metres, both with y up."""
    trimesh.creation.box((180, 80, 90)).export(tmp_path / "RedSofa.obj")
    trimesh.creation.box((0.45, 0.9, 0.45)).export(tmp_path / "kitchen_chair_2.glb")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("office_chair_03", "office chair"),
        ("OfficeChair", "office chair"),
        ("big-couch", "sofa"),
        ("chair2", "chair"),
        ("bathtub", "bathtub"),
        ("toiletBrush", None),
        ("log-cabin", None),
        ("helicopter", None),
    ],
)
def test_a_file_name_tells_the_kind(name, kind):
    assert kind_of(name) == kind


def test_models_are_upright_on_the_floor_and_of_sensible_size(folder):
    models = load_models(folder)
    sofa = models["sofa"][0]()
    assert sofa.size() == pytest.approx([2.3, 2.3 * 90 / 180, 2.3 * 80 / 180], rel=0.01)
    assert sofa.bounds()[0][2] == pytest.approx(0, abs=1e-6)
    assert models["chair"][0]().size() == pytest.approx([0.45, 0.45, 0.9], rel=0.01)


def test_a_table_of_kinds_overrides_names(folder):
    (folder / "kinds.txt").write_text("RedSofa.obj bed\n")
    assert set(load_models(folder)) == {"bed", "chair"}
    (folder / "kinds.txt").write_text("RedSofa.obj spaceship\n")
    with pytest.raises(LocusError, match="line 1: 'spaceship' is not a kind"):
        load_models(folder)


def test_houses_use_the_models(folder):
    models = load_models(folder)
    house = build(3, models)
    outside = {id(part.faces) for maker in models["chair"] + models["sofa"] for part in maker().parts}
    assert any(id(part.faces) in outside for thing in house.placed for part in thing.parts)


def test_photographs_become_square_materials(tmp_path):
    Image.fromarray(np.full((30, 50, 3), 77, np.uint8)).save(tmp_path / "wood.png")
    (texture,) = load_textures(tmp_path)
    assert texture.texture.shape == (256, 256, 3)
    assert (texture.texture == 77).all()


def test_empty_and_useless_folders_are_told_in_a_sentence(tmp_path):
    with pytest.raises(LocusError, match="holds no models"):
        load_models(tmp_path)
    with pytest.raises(LocusError, match="holds no photographs"):
        load_textures(tmp_path)
    trimesh.creation.box().export(tmp_path / "helicopter.obj")
    with pytest.raises(LocusError, match="tells a known kind"):
        load_models(tmp_path)
    (tmp_path / "sofa.obj").write_text("nothing")
    with pytest.raises(LocusError, match=r"cannot be read|holds no triangles"):
        load_models(tmp_path)["sofa"][0]()
