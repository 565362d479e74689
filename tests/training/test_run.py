"""Whole runs: learning, resuming, and everything that can go wrong."""

import json
import os
import resource
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from locus import backbones, load_scene
from locus.errors import LocusError
from locus.model import LoCUS
from locus.training import PRESETS, TrainingError, loop, train
from locus.training.checkpoints import LAST, METRICS, read_metrics
from locus.training.loop import Trainer
from locus.training.places import environments, split_by_space
from tests.scenes import layouts, room
from tests.training.launching import SETTINGS, weights


def test_a_run_leaves_a_model_and_all_that_tells_how_it_was_made(run, curves, tmp_path):
    summary = run()
    folder = tmp_path / "run"
    assert summary.finished
    assert [row["step"] for row in summary.metrics] == [0, 3, 6]
    assert set(summary.metrics[0]["baselines"]) == {"pca", "whitened pca"}
    for name in ("model.safetensors", "config.json", "training.json", "curves.png", METRICS, LAST):
        assert (folder / name).stat().st_size > 0
    assert list((folder / "tensorboard").glob("events*"))
    told = json.loads((folder / "training.json").read_text())
    assert told["unseen"] == ["unseen"]
    assert set(told["scenes"]) == {"first", "second", "unseen"}
    model = LoCUS.from_pretrained(folder)
    features = model.features(np.zeros((60, 80, 3), np.uint8))
    assert features.shape == (1, 4, 6, 16)


def test_learning_raises_cross_view_ap_on_the_training_places(run):
    summary = run(replace(SETTINGS, steps=60, validate_every=60, checkpoint_every=60))
    first, last = summary.metrics[0], summary.metrics[-1]
    assert last["train"]["cross-view"] > 1.1 * first["train"]["cross-view"]


def test_the_untrained_linear_head_is_the_whitened_baseline(run):
    first = run(replace(SETTINGS, steps=1, dimension=16)).metrics[0]
    assert first["unseen"]["cross-view"] == pytest.approx(first["baselines"]["whitened pca"]["cross-view"], abs=1e-3)


@pytest.mark.parametrize("head", ["paper", "residual", "blocks"])
def test_every_head_trains_and_loads(run, tiny, tmp_path, head):
    told = {"backbone": str(tiny), "layer": 2, "head": head, "blocks": 2, "radii": (0.3, 0.6)}
    settings = replace(SETTINGS, **told, steps=2, validate_every=2)
    assert run(settings).finished
    before = weights(tmp_path / "run")
    assert all(torch.isfinite(weight).all() for weight in before.values())
    assert LoCUS.from_pretrained(tmp_path / "run").features(np.zeros((60, 80, 3), np.uint8)).shape == (2, 4, 6, 16)


@pytest.mark.parametrize("change", [{"sampling": "space"}, {"embedding": "mean"}, {"environments_per_batch": 2}])
def test_other_ways_to_draw_and_embed_landmarks_train(run, tmp_path, change):
    assert run(replace(SETTINGS, steps=2), out="plain").finished
    assert run(replace(SETTINGS, steps=2, **change), out="other").finished
    assert any((weights(tmp_path / "plain")[name] != each).any() for name, each in weights(tmp_path / "other").items())


def test_augmented_copies_are_drawn(run, tmp_path):
    plain = replace(SETTINGS, steps=2, token_noise=0.0)
    assert run(plain, out="plain").finished
    assert run(replace(plain, copies=1), out="copies").finished
    assert any((weights(tmp_path / "plain")[name] != each).any() for name, each in weights(tmp_path / "copies").items())


def test_epochs_count_frames(run):
    assert run(replace(SETTINGS, epochs=2)).metrics[-1]["step"] == 2 * 24 // 6


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(run, tmp_path, monkeypatch):
    run(out="whole")
    stop_after(monkeypatch, 2)
    assert not run(out="parts").finished
    monkeypatch.undo()
    assert torch.load(tmp_path / "parts" / LAST, weights_only=True)["step"] == 2
    assert run(out="parts").finished
    for name, weight in weights(tmp_path / "whole").items():
        assert torch.equal(weight, weights(tmp_path / "parts")[name])
    assert read_metrics(tmp_path / "whole" / METRICS) == read_metrics(tmp_path / "parts" / METRICS)


def stop_after(monkeypatch, steps: int) -> None:
    """Ctrl-C in the middle of a step."""
    learn = Trainer._learn

    def interrupted(self, batch):
        if self.step == steps - 1:
            os.kill(os.getpid(), signal.SIGINT)
        return learn(self, batch)

    monkeypatch.setattr(Trainer, "_learn", interrupted)


def test_a_finished_run_is_not_trained_again(run, monkeypatch):
    run()
    monkeypatch.setattr(Trainer, "_learn", lambda *_: pytest.fail("trained again"))
    assert run().finished


def test_a_finished_run_goes_on_for_more_steps(run):
    run()
    assert run(replace(SETTINGS, steps=8)).metrics[-1]["step"] == 8


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


def test_one_scene_is_split_by_space(cache, tmp_path):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(20))
    settings = replace(SETTINGS, steps=1)
    assert train([tmp_path / "room"], tmp_path / "run", settings, cache=cache).finished
    backbone = backbones.load("classic")
    scene = load_scene(tmp_path / "room")
    (place,) = environments([scene], backbone, settings, cache, augment=False, progress=False)
    points = place.scenes[0].points
    longest = PCA(1).fit(points[np.isfinite(points).all(axis=-1)])
    along, frames = [], np.arange(len(points))
    for part in split_by_space(place):
        rest = part.read(frames)[1]
        assert set(np.flatnonzero(np.isfinite(rest).any(axis=(1, 2, 3)))) == set(part.usable)
        along.append(longest.transform(rest[np.isfinite(rest).all(axis=-1)])[:, 0])
    trained, kept = along
    assert trained.max() <= kept.min() + 1e-4 or kept.max() <= trained.min() + 1e-4
    assert len(trained) + len(kept) == np.isfinite(points).all(axis=-1).sum()
    assert len(kept) / (len(trained) + len(kept)) == pytest.approx(0.25, abs=0.01)


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


def test_globs_and_lists_name_scenes(rooms, cache, tmp_path):
    (tmp_path / "scenes.txt").write_text(f"# a list\n{rooms / 'first'}\n\n{rooms / 'second'}\n")
    settings = replace(SETTINGS, steps=1)
    train([tmp_path / "scenes.txt"], tmp_path / "a", settings, val=[str(rooms / "uns*")], cache=cache)
    with pytest.raises(TrainingError, match="matches nothing"):
        train([str(rooms / "nope*")], tmp_path / "b", settings, cache=cache)


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

    def empty(self, step, stream=0):
        drawn = batch(self, step, stream)
        return replace(drawn, landmarks=nothing) if stream == 0 and step in skip else drawn

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
    assert {file.name for file in (tmp_path / "run" / "checkpoints").iterdir()} == {"last.pt", "best.pt"}
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


@pytest.mark.parametrize(
    "change",
    [
        {"copies": -1},
        {"seed": -1},
        {"weight_decay": -1.0},
        {"warmup": -1},
        {"token_noise": -0.1},
        {"epochs": 0},
        {"clip": 0.0},
    ],
)
def test_settings_that_mean_nothing_are_refused(change):
    with pytest.raises(TrainingError, match="must"):
        replace(SETTINGS, **change)


def test_a_feature_may_be_longer_than_a_token(run, tmp_path):
    assert run(replace(SETTINGS, dimension=80, radii=(0.3, 0.6), steps=1)).finished
    assert weights(tmp_path / "run")["project.weight"].shape == (160, 56)


def test_a_link_to_a_training_scene_is_not_unseen(rooms, cache, tmp_path):
    (tmp_path / "other").symlink_to(rooms / "first")
    with pytest.raises(TrainingError, match="train on and to validate on"):
        train([rooms / "first"], tmp_path / "run", SETTINGS, val=[tmp_path / "other"], cache=cache)


def test_caches_that_the_disk_would_not_hold_together_are_refused_before_the_first(run, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr("locus.cache.shutil.disk_usage", lambda path: usage._replace(free=10**9 + 500_000))
    with pytest.raises(LocusError, match=r"the cache of 3 scenes needs .* --cache"):
        run(replace(SETTINGS, copies=40))


def test_a_pickle_in_place_of_a_checkpoint_is_not_run(run, tmp_path):
    run(replace(SETTINGS, steps=1))
    torch.save({"step": Path("x")}, tmp_path / "run" / LAST)
    with pytest.raises(TrainingError, match="cannot be read"):
        run(replace(SETTINGS, steps=1))


def test_presets_are_the_papers_and_the_authors():
    assert (PRESETS["paper"].backbone, PRESETS["paper"].layer, PRESETS["paper"].head) == ("dino-vitb8", 11, "paper")
    assert PRESETS["paper"].learning_rate == 1e-4
    assert PRESETS["official"].learning_rate == 1e-3
    assert PRESETS["paper"].kappa * PRESETS["paper"].radii[0] == 10


def test_a_run_from_before_a_setting_existed_goes_on(run, tmp_path):
    run(replace(SETTINGS, steps=2))
    file = tmp_path / "run" / "training.json"
    told = json.loads(file.read_text())
    del told["settings"]["live"], told["settings"]["copies"]
    file.write_text(json.dumps(told))
    with pytest.raises(TrainingError, match="live was False and is True"):
        run(replace(SETTINGS, steps=4, live=True))
    assert run(replace(SETTINGS, steps=4)).metrics[-1]["step"] == 4


def test_what_a_killed_run_left_half_written_is_cleared_away(run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".training.json.a1b2c3d4").write_text("{")  # killed while it wrote its very first file
    run(replace(SETTINGS, steps=1))
    (folder / "checkpoints" / ".last.pt.a1b2c3d4").write_bytes(b"half")
    (folder / ".notes").touch()
    run(replace(SETTINGS, steps=2))
    hidden = {file.name for file in folder.rglob(".*")}
    assert hidden == {".notes"}


def test_the_time_of_a_run_is_said_before_it_starts(rooms, cache, tmp_path, capsys):
    settings = replace(SETTINGS, steps=4)
    shown = train([rooms / "first"], tmp_path / "a", settings, val=[rooms / "unseen"], cache=cache, progress=True)
    said = capsys.readouterr().err
    assert said.index("4 steps of about") < said.index("step 3:")
    silent = train([rooms / "first"], tmp_path / "b", settings, val=[rooms / "unseen"], cache=cache)
    assert shown.metrics == silent.metrics  # trying a step changes nothing
