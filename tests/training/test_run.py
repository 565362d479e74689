"""Whole runs: learning, resuming, and what they leave; test_refusals.py has what stops them."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from locus import backbones, load_scene
from locus.cli import main
from locus.errors import LocusError
from locus.features.reduction import reduced_model
from locus.files import lock
from locus.model import LoCUS
from locus.training import PRESETS, TrainingError, train
from locus.training.checkpoints import LAST, METRICS, read_metrics
from locus.training.environments import open_environments, split_by_space
from locus.training.loop import Trainer
from locus.training.run import stop_request
from locus.training.validation import fixed_batches, precision
from tests.scenes import layouts, room
from tests.training.launching import SETTINGS, weights


def test_a_run_leaves_a_model_and_all_that_tells_how_it_was_made(run, curves, tmp_path):
    summary = run(replace(SETTINGS, kappa=20.0, tau=0.02))
    folder = tmp_path / "run"
    assert summary.finished
    assert [row["step"] for row in summary.metrics] == [0, 3, 6]
    assert set(summary.metrics[0]["baselines"]) == {"pca", "whitened pca"}
    for name in ("model.safetensors", "config.json", "training.json", "curves.png", METRICS, LAST):
        assert (folder / name).stat().st_size > 0
    assert list((folder / "tensorboard").glob("events*"))
    told = json.loads((folder / "training.json").read_text())
    assert told["validation"] == ["unseen"]
    assert set(told["scenes"]) == {"first", "second", "unseen"}
    model = LoCUS.from_pretrained(folder)
    features = model.features(np.zeros((60, 80, 3), np.uint8))
    assert features.shape == (1, 4, 6, 16)
    assert (model.kappa, model.tau) == (20.0, 0.02)


def test_learning_raises_cross_view_ap_on_the_training_scenes(run):
    summary = run(replace(SETTINGS, steps=60, validate_every=60, checkpoint_every=60))
    first, last = summary.metrics[0], summary.metrics[-1]
    assert last["train"]["cross-view"] > 1.1 * first["train"]["cross-view"]


def test_a_run_starts_from_the_pca_that_evaluation_fits(run, rooms, cache):
    """Frames spread evenly over the training scenes, for the baselines and for the start of the head."""
    first = run(replace(SETTINGS, steps=1)).metrics[0]
    backbone = backbones.load("classic")
    (kept,) = open_environments([load_scene(rooms / "unseen")], backbone, SETTINGS, cache)
    trained = [load_scene(rooms / name) for name in ("first", "second")]
    for name, whiten in (("pca", False), ("whitened pca", True)):
        model = reduced_model(backbone, trained, SETTINGS.dimension, None, whiten=whiten, cache=cache)
        (expected,) = precision(model.head_features, fixed_batches([kept], SETTINGS), SETTINGS).values()
        assert first["baselines"][name]["cross-view"] == pytest.approx(expected["cross-view"], abs=1e-6)
    assert first["validation"]["cross-view"] == pytest.approx(expected["cross-view"], abs=1e-6)


def test_a_run_of_the_papers_head_has_the_same_baselines(run, tiny):
    """They are of the tokens, whatever learns; the paper's head itself starts at random."""
    settings = replace(SETTINGS, backbone=str(tiny), layer=2, steps=1)
    linear, paper = (run(replace(settings, head=head), out=head).metrics[0] for head in ("linear", "paper"))
    assert linear["baselines"] == paper["baselines"]
    assert paper["validation"]["cross-view"] != paper["baselines"]["whitened pca"]["cross-view"]


def test_what_chooses_the_checkpoint_is_called_validation(run, rooms, cache, tmp_path, capsys):
    summary = run(replace(SETTINGS, steps=3, learning_rate=1e-9))
    assert set(summary.metrics[0]["validation"]["environments"]) == {"unseen"}
    assert summary.best["validation"]["cross-view"] == max(row["validation"]["cross-view"] for row in summary.metrics)
    capsys.readouterr()
    (tmp_path / "kept").symlink_to(rooms / "unseen")
    words = ["--backbone", "classic", "--layer", "None", "--resolution", "None", "--head", "linear", "--radii", "0.3"]
    words += ["--frames-per-batch", "6", "--steps", "1", "--cache", str(cache), "--val", str(tmp_path / "kept")]
    assert main(["train", str(rooms / "first"), str(rooms / "second"), "--out", str(tmp_path / "said"), *words]) == 0
    said = "".join(capsys.readouterr())
    assert "cross-view AP on validation scenes" in said
    assert "cross-view AP validation" in said
    assert "unseen" not in said


def test_without_clipping_a_gradient_of_any_length_is_taken_as_it_is(run, monkeypatch):
    step, lengths = torch.optim.AdamW.step, []

    def watched(self):
        lengths.append(torch.cat([weight.grad.flatten() for weight in self.param_groups[0]["params"]]).norm())
        step(self)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    for out, clip in (("clipped", 1e-3), ("free", None)):
        run(replace(SETTINGS, steps=1, clip=clip), out=out)
    assert lengths[0] == pytest.approx(1e-3, rel=1e-3)
    assert lengths[1] > 2e-3


@pytest.mark.parametrize("head", ["paper", "blocks"])
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
    plain = replace(SETTINGS, steps=2)
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


def test_one_scene_is_split_by_space(cache, tmp_path):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(20))
    settings = replace(SETTINGS, steps=1)
    assert train([tmp_path / "room"], tmp_path / "run", settings, cache=cache).finished
    backbone = backbones.load("classic")
    scene = load_scene(tmp_path / "room")
    (environment,) = open_environments([scene], backbone, settings, cache)
    points = environment.scene.points
    longest = PCA(1).fit(points[np.isfinite(points).all(axis=-1)])
    along, frames = [], np.arange(len(points))
    for part in split_by_space(environment):
        rest = part.read(frames)[1]
        assert set(np.flatnonzero(np.isfinite(rest).any(axis=(1, 2, 3)))) == set(part.usable)
        along.append(longest.transform(rest[np.isfinite(rest).all(axis=-1)])[:, 0])
    trained, kept = along
    assert trained.max() <= kept.min() + 1e-4 or kept.max() <= trained.min() + 1e-4
    assert len(trained) + len(kept) == np.isfinite(points).all(axis=-1).sum()
    assert len(kept) / (len(trained) + len(kept)) == pytest.approx(0.25, abs=0.01)


def test_globs_and_lists_name_scenes(rooms, cache, tmp_path):
    (tmp_path / "scenes.txt").write_text(f"# a list\n{rooms / 'first'}\n\n{rooms / 'second'}\n")
    settings = replace(SETTINGS, steps=1)
    train([tmp_path / "scenes.txt"], tmp_path / "a", settings, val=[str(rooms / "uns*")], cache=cache)
    with pytest.raises(LocusError, match="matches nothing"):
        train([str(rooms / "nope*")], tmp_path / "b", settings, cache=cache)


def test_a_feature_may_be_longer_than_a_token(run, tmp_path):
    assert run(replace(SETTINGS, dimension=80, radii=(0.3, 0.6), steps=1)).finished
    assert weights(tmp_path / "run")["project.weight"].shape == (160, 56)


def test_the_preset_paper_is_what_the_paper_says():
    paper = PRESETS["paper"]
    assert (paper.backbone, paper.head, paper.dimension) == ("dino-vitb8", "paper", 64)
    assert (paper.learning_rate, paper.frames_per_batch, paper.epochs) == (1e-4, 16, 20)
    assert (paper.tau, paper.radii) == (0.01, (0.2,))
    assert (paper.sampling, paper.embedding, paper.exclude_same_frame) == ("patches", "patch", False)
    # Of these it says nothing, so there are none.
    assert (paper.clip, paper.warmup, paper.weight_decay, paper.copies) == (None, 0, 0.0, 0)
    # From the authors' code: block 11 of DINO ViT-B/8 without its norm, images of 256×320, negatives up to 10 m.
    assert (paper.layer, paper.norm, paper.resolution) == (11, False, 256)
    assert paper.kappa * paper.radii[0] == 10


def test_the_preset_official_differs_from_the_papers_in_two_numbers():
    official = PRESETS["official"]
    assert (official.learning_rate, official.landmarks) == (1e-3, 64)
    assert replace(official, learning_rate=1e-4, landmarks=512) == PRESETS["paper"]


def test_a_run_from_before_a_setting_existed_goes_on(run, tmp_path):
    run(replace(SETTINGS, steps=2))
    file = tmp_path / "run" / "training.json"
    told = json.loads(file.read_text())
    del told["settings"]["sampling"], told["settings"]["copies"], told["checksum"]
    file.write_text(json.dumps(told))
    with pytest.raises(TrainingError, match="copies was 0 and is 1"):
        run(replace(SETTINGS, steps=4, copies=1))
    assert run(replace(SETTINGS, steps=4)).metrics[-1]["step"] == 4


def test_what_a_killed_run_left_half_written_is_cleared_away(run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".training.json.a1b2c3d4.locus-partial").write_text("{")  # killed while it wrote its very first file
    run(replace(SETTINGS, steps=1))
    (folder / "checkpoints" / ".last.pt.a1b2c3d4.locus-partial").write_bytes(b"half")
    (folder / ".notes").touch()
    run(replace(SETTINGS, steps=2))
    hidden = {file.name for file in folder.rglob(".*")}
    assert hidden == {".notes"}


def test_a_second_run_in_the_same_folder_is_refused(run, tmp_path):
    first = run(replace(SETTINGS, steps=1)).metrics
    with lock(tmp_path / "run" / "training.json"), pytest.raises(LocusError, match="another process is writing"):
        run(replace(SETTINGS, steps=2))
    assert read_metrics(tmp_path / "run" / METRICS) == first
    assert run(replace(SETTINGS, steps=2)).metrics[: len(first)] == first


def test_a_refused_run_leaves_no_folder(rooms, tmp_path):
    with pytest.raises(LocusError, match="no scene"):
        train([tmp_path / "nowhere"], tmp_path / "new", SETTINGS)
    assert not list(tmp_path.iterdir())


def test_damaged_metrics_are_named_and_a_line_cut_short_is_not(run, tmp_path):
    file, before = tmp_path / "run" / METRICS, run(replace(SETTINGS, steps=3)).metrics
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    assert read_metrics(file) == before[:-1]
    file.write_bytes(content.replace(b'"step": 0', b'"step": 1'))
    with pytest.raises(TrainingError, match=r"line 1 of .*metrics\.jsonl is damaged"):
        read_metrics(file)
    file.write_bytes(b"\xff" + content)
    with pytest.raises(TrainingError, match=r"line 1 of"):
        read_metrics(file)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_end_it_finishes_the_step(sent):
    with stop_request() as asked:
        assert not asked()
        signal.raise_signal(sent)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(sent)


def test_the_time_of_a_run_is_said_before_it_starts(rooms, cache, tmp_path, capsys):
    settings = replace(SETTINGS, steps=4)
    shown = train([rooms / "first"], tmp_path / "a", settings, val=[rooms / "unseen"], cache=cache, progress=True)
    said = capsys.readouterr().err
    assert said.index("4 steps of about") < said.index("step 3:")
    silent = train([rooms / "first"], tmp_path / "b", settings, val=[rooms / "unseen"], cache=cache)
    assert shown.metrics == silent.metrics  # trying a step changes nothing


def test_trying_a_step_changes_nothing(rooms, cache, tiny, tmp_path):
    backbone = backbones.load(tiny, 2)
    environments = open_environments([load_scene(rooms / "first")], backbone, SETTINGS, cache)
    model = LoCUS(backbone, dimension=16, head="blocks", blocks=1, radii=SETTINGS.radii)
    trainer = Trainer(model, environments, environments, replace(SETTINGS, head="blocks"), tmp_path)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    random = torch.get_rng_state()
    assert trainer.seconds_a_step() > 0
    assert torch.equal(random, torch.get_rng_state())
    assert trainer.step == 0
    assert not trainer.optimizer.state
    assert all(weight.grad is None for weight in model.head.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
