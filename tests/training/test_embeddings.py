"""The mean of a landmark's positives, against the objective's own definition on masks."""

from dataclasses import replace

import numpy as np
import torch

from locus.objective import mean_embeddings, retrieval_sets
from locus.training.batches import Batch
from locus.training.embeddings import mean_of_positives


def test_the_mean_of_positives_is_that_of_the_retrieval_sets():
    rng = np.random.default_rng(0)
    positions = torch.from_numpy(rng.uniform(0, 1, (200, 3))).float()
    positions[::7] = torch.nan
    places, frames = torch.arange(200) // 100, torch.arange(200) // 20
    landmarks = torch.from_numpy(rng.choice(np.flatnonzero(np.arange(200) % 7), 30, replace=False))
    batch = Batch([], positions, places, frames, landmarks)
    features = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(2, 200, 8))).float(), dim=2)
    radii = (0.2, 0.4)
    found = mean_of_positives(features, batch, radii)
    for scale, radius in enumerate(radii):
        positive, _ = retrieval_sets(positions, places, frames, landmarks, radius, 1.0)
        torch.testing.assert_close(found[scale], mean_embeddings(features[scale], positive, landmarks))


def test_alone_within_the_radius_a_landmark_is_embedded_as_its_own_patch():
    positions = torch.eye(3)
    nothing = torch.zeros(3, dtype=torch.int64)
    batch = Batch([], positions, nothing, torch.arange(3), torch.tensor([2, 0]))
    features = torch.nn.functional.normalize(torch.rand(1, 3, 4), dim=2)
    torch.testing.assert_close(mean_of_positives(features, batch, (0.1,)), features[:, [2, 0]])
    other_place = replace(batch, environments=torch.tensor([0, 1, 2]))
    torch.testing.assert_close(mean_of_positives(features, other_place, (10.0,)), features[:, [2, 0]])
