"""What a batch is, against brute force."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from locus import backbones, load_scene
from locus.objective import draw_landmarks
from locus.scenes.covisibility import MIN_OVERLAP
from locus.training.batches import Sampler
from locus.training.environments import open_environments
from locus.training.settings import TrainingError
from tests.training import launching

SETTINGS = replace(launching.SETTINGS, landmarks=40)


@pytest.fixture(scope="module")
def environments(rooms, tmp_path_factory):
    scenes = [load_scene(rooms / name) for name in ("first", "second")]
    cache = tmp_path_factory.mktemp("cache")
    return open_environments(scenes, backbones.load("classic"), SETTINGS, cache)


def test_frames_are_drawn_by_overlap_with_a_random_one(environments):
    environment = environments[0]
    shared = (environment.scene.overlap + environment.scene.overlap.T).toarray() / 2
    counts = np.zeros(len(shared))
    for seed in range(200):
        frames = environment.draw(np.random.default_rng(seed), 4)
        assert len(set(frames)) == len(frames)
        assert (shared[frames[0], frames[1:]] >= MIN_OVERLAP).all()
        counts[frames[0]] += 1
    assert (counts > 0).all()  # every frame is the first one of some batch


def test_more_frames_than_overlap_gives_those_there_are(environments):
    assert 2 <= len(environments[0].draw(np.random.default_rng(0), 1000)) <= 12


def test_a_batch_follows_from_seed_and_step_alone(environments):
    first, again = Sampler(environments, SETTINGS), Sampler(environments, SETTINGS)
    first.batch(0)
    for a, b in zip(vars(first.batch(7)).values(), vars(again.batch(7)).values(), strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
    assert not torch.equal(first.batch(7).landmarks, first.batch(8).landmarks)
    other = Sampler(environments, replace(SETTINGS, seed=1))
    assert not torch.equal(first.batch(7).landmarks, other.batch(7).landmarks)


def test_several_environments_in_one_batch_share_the_frames(environments):
    batch = Sampler(environments, replace(SETTINGS, environments_per_batch=2)).batch(0)
    frames = {(int(e), int(f)) for e, f in zip(batch.environments, batch.frames, strict=True)}
    assert len([e for e, _ in frames if e == 0]) == len([e for e, _ in frames if e == 1]) == 3
    assert len({f for _, f in frames}) == 6


def test_landmarks_are_valid_patches_seen_in_another_frame(environments):
    batch = Sampler(environments, SETTINGS).batch(3)
    assert 0 < len(batch.landmarks) <= SETTINGS.landmarks
    points, frames = batch.positions.numpy(), batch.frames.numpy()
    for landmark in batch.landmarks.tolist():
        distance = np.linalg.norm(points - points[landmark], axis=1)
        assert ((distance <= 0.3) & (frames != frames[landmark])).any()


def test_landmarks_are_uniform_over_all_frames(environments):
    """The published code drew all of them from the first image."""
    sampler = Sampler(environments[:1], SETTINGS)
    of_frame = torch.zeros(6)
    for step in range(40):
        batch = sampler.batch(step)
        of_frame += torch.bincount(batch.frames[batch.landmarks], minlength=6)[:6]
    assert of_frame.min() > 0.5 * of_frame.mean()


def test_space_sampling_finds_few_landmarks_and_each_near_a_surface(environments):
    sampler = Sampler(environments, replace(SETTINGS, sampling="space"))
    drawn = [sampler.batch(step).landmarks.tolist() for step in range(20)]
    assert all(len(set(landmarks)) == len(landmarks) for landmarks in drawn)
    # As many points are drawn as patches would be, and most of them lie in the empty air.
    from_patches = [len(Sampler(environments, SETTINGS).batch(step).landmarks) for step in range(20)]
    assert 0 < sum(map(len, drawn)) < 0.5 * sum(from_patches)


def test_space_sampling_prefers_none_of_the_frames(environments):
    # All points are near enough to a patch, so more landmarks are found than wanted.
    sampler = Sampler(environments, replace(SETTINGS, sampling="space", radii=(1.0,), landmarks=10))
    batches = [sampler.batch(step) for step in range(60)]
    by_frame = sum(np.bincount(batch.frames[batch.landmarks], minlength=SETTINGS.frames_per_batch) for batch in batches)
    assert by_frame.min() > 0.3 * by_frame.max()


def test_without_depth_there_is_no_landmark():
    nothing = torch.full((10, 3), torch.nan)
    zeros = torch.zeros(10, dtype=torch.int64)
    assert len(draw_landmarks(nothing, zeros, torch.arange(10), 0.2, 10, np.random.default_rng(0))) == 0


def test_shares_of_several_processes_are_the_whole(environments):
    whole = Sampler(environments, SETTINGS).batch(1)
    parts = [whole.share(rank, 3) for rank in range(3)]
    assert sum(len(part.positions) for part in parts) == len(whole.positions)
    assert sum(len(tokens) for part in parts for tokens, _ in part.sequences) == 6
    there = torch.cat([part.positions[part.landmarks] for part in parts])
    here = whole.positions[whole.landmarks]
    assert sorted(map(tuple, there.tolist())) == sorted(map(tuple, here.tolist()))
    for part in parts:  # a patch's tokens and position stay together
        tokens = torch.cat([sequence.flatten(0, 1) for sequence, _ in part.sequences])
        all_tokens = torch.cat([sequence.flatten(0, 1) for sequence, _ in whole.sequences])
        rows = [row for row in range(len(whole.frames)) if whole.frames[row] in part.frames]
        torch.testing.assert_close(tokens, all_tokens[rows])
        torch.testing.assert_close(part.positions, whole.positions[rows], equal_nan=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"frames_per_batch": 3, "environments_per_batch": 2}, "fewer than two frames"),
        ({"radii": ()}, "radii"),
        ({"radii": (0.2, -1.0)}, "radii"),
        ({"landmarks": 0}, "landmarks must be at least 1"),
        ({"learning_rate": 0.0}, "learning rate"),
        ({"head": "identity"}, "nothing to learn"),
    ],
)
def test_impossible_settings_are_refused(wrong, message):
    with pytest.raises(TrainingError, match=message):
        replace(SETTINGS, **wrong)


def test_the_learning_rate_rises_and_falls():
    settings = replace(SETTINGS, steps=100, warmup=10, learning_rate=1.0)
    rates = [settings.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1.0)
    assert rates[-1] < 0.01
    assert replace(settings, schedule="constant").rate(99) == 1.0
