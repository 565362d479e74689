import numpy as np
import torch
import torch.nn.functional as F

from locus.viewer.cloud import Cloud
from locus.viewer.lighting import light
from locus.viewer.picking import Hit


def unit(*rows):
    return F.normalize(torch.tensor(rows, dtype=torch.float32), dim=-1)


def cloud(frame, pixel):
    count = len(frame)
    points, colours = np.zeros((count, 3), np.float32), np.zeros((count, 3), np.uint8)
    return Cloud(points, colours, np.array(frame, np.int32), np.array(pixel, np.int32))


def test_what_is_like_the_query_lights_up_in_views_points_and_landmarks_alike():
    features = torch.zeros(2, 1, 2, 2)
    features[0, 0] = unit((1, 0), (0, 1))  # the first view's left half is like the query
    features[1, 0] = unit((0, 1), (0, 1))
    points = cloud([0, 0, 1], [0, 7, 0])  # left and right of the first view, and of the second
    lit = light(unit((1, 0))[0], features, points, (8, 1), unit((1, 0.1), (0, 1)).numpy(), 0.9)
    assert lit.masks[0, 0].tolist() == [True, True, False, False, False, False, False, False]
    assert not lit.masks[1].any()
    assert lit.views.tolist() == [True, False]
    assert lit.scores.tolist() == [1.0, 0.0]
    assert lit.points.tolist() == [True, False, False]
    assert lit.landmarks.tolist() == [True, False]
    assert lit.best(5) == [0]


def test_a_lower_threshold_lights_no_less(viewed):
    query = viewed.query(Hit("point", 100, 1.0), 0)
    rows, embedding = viewed.seen.features[0], viewed.landmarks(0).embedding
    strict, lax = (light(query, rows, viewed.cloud, viewed.size, embedding, least) for least in (0.95, 0.8))
    assert lax.masks[strict.masks].all()
    assert lax.points[strict.points].all()
    assert lax.landmarks[strict.landmarks].all()
    assert lax.points.sum() > strict.points.sum() > 0


def test_nothing_lights_up_where_nothing_is_like_it(viewed):
    query = -viewed.query(Hit("point", 100, 1.0), 0)
    lit = light(query, viewed.seen.features[0], viewed.cloud, viewed.size, viewed.landmarks(0).embedding, 0.5)
    assert not lit.views.any()
    assert not lit.points.any()
    assert lit.best(3) == []


def test_the_most_similar_views_come_first(viewed):
    query = viewed.query(Hit("image", 4, 1.0, (0.5, 0.5)), 0)
    lit = light(query, viewed.seen.features[0], viewed.cloud, viewed.size, viewed.landmarks(0).embedding, 0.5)
    best = lit.best(20)
    assert np.all(np.diff(lit.scores[best]) <= 0)
    assert set(best) == set(np.flatnonzero(lit.views))
