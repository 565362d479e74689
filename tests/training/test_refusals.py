"""What a run refuses, and what stops it: one clear sentence, and the last good checkpoint kept."""

import resource
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from locus.errors import LocusError
from locus.model import LoCUS
from locus.training import TrainingError, loop, train
from locus.training.checkpoints import LAST, load_state
from tests.scenes import layouts, room
from tests.training.launching import SETTINGS


def test_a_run_of_other_settings_is_not_overwritten(run, rooms):
    run()
    with pytest.raises(TrainingError, match=r"tau was 0\.01 and is 0\.1"):
        run(replace(SETTINGS, tau=0.1))
    with pytest.raises(TrainingError, match="scenes changed"):
        run(scenes=("first",))


def test_a_folder_with_other_things_is_not_used(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").touch()
    with pytest.raises(TrainingError, match="other things"):
        run()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"settings": 3}'])
def test_a_damaged_description_is_named(run, tmp_path, text):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "training.json").write_text(text)
    with pytest.raises(TrainingError, match=r"training\.json is damaged"):
        run()


def test_too_few_frames_to_split_are_refused(cache, tmp_path):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(3))
    with pytest.raises(TrainingError, match="too few to split"):
        train([tmp_path / "room"], tmp_path / "run", SETTINGS, cache=cache)


def test_several_scenes_need_named_validation_scenes(run):
    with pytest.raises(TrainingError, match="--val"):
        run(val=())


def test_a_validation_scene_is_never_trained_on(run):
    with pytest.raises(TrainingError, match="train on and to validate on"):
        run(scenes=("first", "unseen"))


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_checkpoint(run, tmp_path, monkeypatch):
    head_features = LoCUS.head_features
    calls = []

    def broken(self, sequence, grid):
        features = head_features(self, sequence, grid)
        if features.requires_grad:
            calls.append(1)
            if len(calls) == 3:
                features.register_hook(lambda gradient: gradient * torch.nan)
        return features

    monkeypatch.setattr(LoCUS, "head_features", broken)
    with pytest.raises(TrainingError, match=r"step 3: .*nan.*last good checkpoint"):
        run()
    state = torch.load(tmp_path / "run" / LAST, weights_only=True)
    assert state["step"] == 2
    assert all(torch.isfinite(weight).all() for weight in state["head"].values())


def test_a_step_that_makes_weights_infinite_is_not_saved(run, tmp_path, monkeypatch):
    step = torch.optim.AdamW.step

    def overflowing(self):
        step(self)
        with torch.no_grad():
            self.param_groups[0]["params"][0][0] = torch.inf

    run(replace(SETTINGS, steps=2))
    monkeypatch.setattr(torch.optim.AdamW, "step", overflowing)
    with pytest.raises(TrainingError, match=r"step 3: .*infinite.*last good checkpoint"):
        run()
    assert torch.load(tmp_path / "run" / LAST, weights_only=True)["step"] == 2


def test_a_scene_without_depth_is_refused(run, rooms, cache, tmp_path):
    shots = room.shots(6)
    for shot in shots:
        shot.depth = np.zeros_like(shot.depth)
    (tmp_path / "dark").mkdir()
    layouts.nerfstudio(tmp_path / "dark", shots)
    with pytest.raises(TrainingError, match="no patch with valid depth"):
        train([tmp_path / "dark"], tmp_path / "run", SETTINGS, val=[rooms / "unseen"], cache=cache)


def test_a_radius_larger_than_the_scene_is_refused(run):
    with pytest.raises(TrainingError, match="too large for first"):
        run(replace(SETTINGS, radii=(5.0,)))


def test_batches_without_positives_are_counted_and_explained_if_they_persist(run, monkeypatch):
    nothing = torch.zeros(0, dtype=torch.int64)
    batch = loop.Sampler.batch

    def empty(self, step):
        drawn = batch(self, step)
        return replace(drawn, landmarks=nothing) if step in skip else drawn

    monkeypatch.setattr(loop.Sampler, "batch", empty)
    skip = {1}
    assert run(out="one").metrics[-1]["skipped"] == 1
    skip = set(range(1000))
    with pytest.raises(TrainingError, match="do the frames overlap"):
        run(replace(SETTINGS, steps=200, validate_every=200, checkpoint_every=200), out="all")


def test_a_full_disk_while_saving_leaves_the_previous_checkpoint(run, tmp_path):
    run(replace(SETTINGS, steps=2))
    whole = (tmp_path / "run" / LAST).read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) // 2, before[1]))  # writing fails half-way through the file
    try:
        with pytest.raises(TrainingError, match=r"step 3 could not be saved in .*too large.*goes on"):
            run(replace(SETTINGS, steps=4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / "run" / LAST).read_bytes() == whole
    assert {file.name for file in (tmp_path / "run" / "checkpoints").iterdir()} == {"start.pt", "last.pt", "best.pt"}
    assert run(replace(SETTINGS, steps=4)).finished


def test_training_scenes_whose_frames_do_not_overlap_are_refused(rooms, cache, tmp_path):
    shots = room.shots(6)
    for number, shot in enumerate(shots):
        shot.world_from_camera = shot.world_from_camera.copy()
        shot.world_from_camera[0, 3] += 100 * number
    (tmp_path / "apart").mkdir()
    layouts.nerfstudio(tmp_path / "apart", shots)
    with pytest.raises(TrainingError, match="no patch of the training scenes is seen again"):
        train([tmp_path / "apart"], tmp_path / "run", SETTINGS, val=[rooms / "unseen"], cache=cache)


def test_weights_so_large_that_features_overflow_stop_the_run(run):
    with pytest.raises(TrainingError, match=r"step 2: .*unit length.*try a lower --learning-rate"):
        run(replace(SETTINGS, learning_rate=1e30))


def test_a_damaged_checkpoint_is_named(run, tmp_path):
    run(replace(SETTINGS, steps=1))
    (tmp_path / "run" / LAST).write_bytes(b"PK")
    with pytest.raises(TrainingError, match=r"last\.pt cannot be read"):
        run(replace(SETTINGS, steps=1))


@pytest.mark.parametrize("content", [b"", b"hello world" * 10, b"\x80\x02X" + bytes(range(256))])
def test_what_is_no_checkpoint_is_named(run, tmp_path, content):
    run(replace(SETTINGS, steps=1))
    (tmp_path / "run" / LAST).write_bytes(content)
    with pytest.raises(TrainingError, match="cannot be read"):
        run()


@pytest.mark.parametrize("error", [AssertionError("an id must be a tuple"), struct.error("unpack requires 4 bytes")])
def test_however_torch_fails_to_read_a_checkpoint_is_named(tmp_path, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    (tmp_path / "last.pt").write_bytes(b"PK")
    monkeypatch.setattr("locus.training.checkpoints.torch.load", fail)
    with pytest.raises(TrainingError, match=rf"cannot be read \({error}\)"):
        load_state(tmp_path / "last.pt")


@pytest.mark.parametrize(
    "change",
    [
        {"copies": -1},
        {"seed": -1},
        {"weight_decay": -1.0},
        {"warmup": -1},
        {"epochs": 0},
        {"clip": 0.0},
    ],
)
def test_settings_that_mean_nothing_are_refused(change):
    with pytest.raises(TrainingError, match="must"):
        replace(SETTINGS, **change)


def test_a_link_to_a_training_scene_is_no_validation_scene(rooms, cache, tmp_path):
    (tmp_path / "other").symlink_to(rooms / "first")
    with pytest.raises(TrainingError, match="train on and to validate on"):
        train([rooms / "first"], tmp_path / "run", SETTINGS, val=[tmp_path / "other"], cache=cache)


def test_caches_that_the_disk_would_not_hold_together_are_refused_before_the_first(run, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr("locus.features.cache.shutil.disk_usage", lambda path: usage._replace(free=10**9 + 500_000))
    with pytest.raises(LocusError, match=r"the cache of 3 scenes needs .* --cache"):
        run(replace(SETTINGS, copies=40))


def test_a_pickle_in_place_of_a_checkpoint_is_not_run(run, tmp_path):
    run(replace(SETTINGS, steps=1))
    torch.save({"step": Path("x")}, tmp_path / "run" / LAST)
    with pytest.raises(TrainingError, match="cannot be read"):
        run(replace(SETTINGS, steps=1))
