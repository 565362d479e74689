"""Place recognition: layouts with a room inside, recall against scikit-learn, and VLAD against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from locus.evaluation.protocols.place_layouts import BaiduMall, SeventeenPlaces, UtmPlaces
from locus.evaluation.protocols.place_recognition import first_ranks, vlad
from locus.evaluation.scene_patches import EvaluationError
from locus.scenes import SceneReading
from tests.evaluation.protocols.test_split_localization import SHOTS, evaluated, kept  # noqa: F401  a fixture
from tests.scenes.layouts import save


def utm(root, shots):
    """The last place has no query."""
    for part in ("database", "queries"):
        for k, shot in enumerate(shots if part == "database" else shots[:-1]):
            east = 1000.0 + 30 * k + (3 if part == "queries" else 0)
            save(root / "images" / "test" / part / f"@{east:.1f}@200.0@note@.jpg", shot.image)


def baidu(root, shots):
    for part in ("training", "query"):
        for k, shot in enumerate(shots):
            save(root / f"{part}_images_undistort" / f"img{k}.jpg", shot.image)
            folder = root / f"{part}_gt"
            folder.mkdir(exist_ok=True)
            lines = ["500 0 40", "0 500 30", "0 0 1", "0 0 0", "1 0 0", "0 1 0", "0 0 1", f"{30 * k} 2 1", "80 60"]
            (folder / f"img{k}.camera").write_text("\n".join(lines))


def seventeen(root, shots):
    for part in ("ref", "query"):
        for k, shot in enumerate(shots):
            save(root / part / f"{20 * k}.jpg", shot.image)


LAYOUTS = {"vpr": utm, "baidu": baidu, "17places": seventeen}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_very_same_images_are_found_and_random_descriptions_find_them_by_chance(name, tmp_path):
    (tmp_path / "places").mkdir()
    LAYOUTS[name](tmp_path / "places", SHOTS)
    words = [name, tmp_path / "places", "--methods", "classic", "random", "--words-of-vlad", "8"]
    (table,) = evaluated(tmp_path, *words)["tables"]
    model, random = ([cell["value"] for cell in row["cells"]] for row in table["rows"])
    assert model == [1, 1, 1]
    chance = [first / len(SHOTS) for first in (1, 5, 10)]  # one image of twelve is right
    assert np.all(np.abs(np.array(random) - chance) < 0.35)
    assert f"{11 if name == 'vpr' else 12} queries, 12 images in the database" in table["notes"][0]


def test_places_are_those_within_the_radius(tmp_path):
    utm(tmp_path, SHOTS)
    near, far = (UtmPlaces(within=within).load(tmp_path, SceneReading()) for within in (25.0, 40.0))
    assert near.positives == tuple(frozenset([k]) for k in range(11))
    assert {len(each) for each in far.positives} == {2, 3}


@given(st.integers(0, 10_000))
def test_recall_is_scikit_learns(seed):
    random = np.random.default_rng(seed)
    database, queries = random.normal(size=(9, 4)), random.normal(size=(6, 4))
    positives = [frozenset(np.flatnonzero(random.random(9) < 0.2).tolist()) for _ in range(6)]
    for each in (database, queries):
        each /= np.linalg.norm(each, axis=1, keepdims=True)
    ranks = first_ranks(np.argsort(-queries @ database.T, axis=1), positives)
    for first in (1, 5):
        nearest = NearestNeighbors(n_neighbors=first).fit(database).kneighbors(queries, return_distance=False)
        expected = [bool(set(row) & right) for row, right in zip(nearest.tolist(), positives, strict=True)]
        assert [rank is not None and rank < first for rank in ranks] == expected


def test_vlad_sums_what_the_words_leave():
    words = np.array([[1.0, 0.0], [0.0, 1.0]])
    features = np.array([[0.9, 0.1], [0.8, -0.1], [0.1, 0.7]])
    first = np.array([-0.3, 0.0])
    second = np.array([0.1, -0.3])
    expected = np.concatenate([first / 0.3, second / np.linalg.norm(second)]) / np.sqrt(2)
    assert vlad(features, words) == pytest.approx(expected)


def at_infinity(root):
    (root / "query_gt/img3.camera").write_text("1e999 0 0\n80 60")


@pytest.mark.parametrize(
    ("protocol", "write", "spoil", "sentence"),
    [
        (
            UtmPlaces,
            utm,
            lambda root: save(root / "images/test/queries/a.jpg", SHOTS[0].image),
            "tell its position",
        ),
        (BaiduMall, baidu, lambda root: (root / "query_gt/img3.camera").write_text("1\n"), "not the camera's position"),
        (BaiduMall, baidu, at_infinity, "position is not a number"),
        (SeventeenPlaces, seventeen, lambda root: save(root / "ref/a.jpg", SHOTS[0].image), "called by its number"),
        (SeventeenPlaces, utm, lambda root: None, "holds no images"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_sentence(protocol, write, spoil, sentence, tmp_path):
    write(tmp_path, SHOTS)
    spoil(tmp_path)
    with pytest.raises(EvaluationError, match=sentence):
        protocol().load(tmp_path, SceneReading())
