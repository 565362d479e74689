"""Mean embeddings, against a loop."""

import torch
from torch.nn.functional import normalize

from locus.objective import mean_embeddings, retrieval_sets


def test_an_embedding_is_the_unit_mean_of_the_positives_and_the_own_patch():
    generator = torch.Generator().manual_seed(0)
    positions = 2 * torch.rand(80, 3, generator=generator)
    zeros = torch.zeros(80, dtype=torch.long)
    features = normalize(torch.randn(80, 8, generator=generator, dtype=torch.float64), dim=1)
    landmarks = torch.randint(80, (12,), generator=generator)
    positive, _ = retrieval_sets(positions, zeros, zeros, landmarks, 0.6, 2.0)
    got = mean_embeddings(features, positive, landmarks)
    for j, landmark in enumerate(landmarks):
        members = (positions - positions[landmark]).norm(dim=1) <= 0.6  # eq. 2, own patch and all
        torch.testing.assert_close(got[j], normalize(features[members].mean(dim=0), dim=0))


def test_a_landmark_alone_keeps_its_own_feature():
    features = normalize(torch.randn(3, 4), dim=1)
    nobody = torch.zeros(3, 2, dtype=torch.bool)
    torch.testing.assert_close(mean_embeddings(features, nobody, torch.tensor([2, 0])), features[[2, 0]])
