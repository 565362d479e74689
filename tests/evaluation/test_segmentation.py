"""Segmentation scores against scikit-learn; the ceiling, the floor, oracles, masks from files, and what is left out."""

import json
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.special import logsumexp
from sklearn.metrics import average_precision_score, jaccard_score

from locus import load_scene
from locus.cli import main
from locus.errors import LocusError
from locus.evaluation import runner, segmentation
from locus.evaluation.masks import Mask2Former, MaskPredictions, Segments, oracle_names
from locus.evaluation.methods import Chance, Method, Truth, Unavailable
from locus.evaluation.metrics import group_scores, log_odds
from locus.evaluation.patch_truth import PatchTruth
from locus.evaluation.runner import run
from locus.evaluation.scene_patches import EvaluationError, read_patches
from locus.evaluation.segmentation import Segmentation
from locus.evaluation.specs import MethodOptions, method_of, methods_of
from locus.features.dense import scene_features
from locus.scenes.scene import LabelClass
from locus.tasks.patch_labels import labelled_patches, same_names
from locus.tasks.probe import Probe, fit_probe
from tests.scenes import layouts, room


@pytest.fixture(scope="module")
def patches(tmp_path_factory):
    """The room with its labels."""
    folder = tmp_path_factory.mktemp("labelled") / "room"
    write(folder, room.shots(8))
    return read_patches(load_scene(folder), (9, 12))


def write(root, shots):
    """In the native format: label maps beside the images, and the list of classes."""
    layouts.nerfstudio(root, shots)
    content = json.loads((root / "transforms.json").read_text())
    for shot, frame in zip(shots, content["frames"], strict=True):
        for kind in ("semantic", "instance"):
            layouts.save(root / kind / f"{shot.name}.png", getattr(shot, kind).astype(np.uint16))
            frame[f"{kind}_file_path"] = f"{kind}/{shot.name}.png"
    content["classes"] = [{"id": number, "name": name, "kind": kind} for number, (name, kind) in room.CLASSES.items()]
    (root / "transforms.json").write_text(json.dumps(content))
    return root


CLASSES = [LabelClass(1, "wall", "stuff"), LabelClass(2, "floor", "stuff"), LabelClass(3, "sofa 1", "thing")]
CLASSES += [LabelClass(4, "sofa 2", "thing"), LabelClass(5, "lamp 9", "thing")]


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_scikit_learns(seed):
    random = np.random.default_rng(seed)
    truth, predicted = random.integers(1, 6, 80), random.integers(0, 6, 80)
    likely = random.random((80, 5))
    for group, ids in {"stuff": [1, 2], "things": [3, 4, 5], "all": [1, 2, 3, 4, 5]}.items():
        inside = np.isin(truth, ids)
        present = [number for number in ids if (truth == number).any()]
        scores, listed = group_scores(truth, predicted, CLASSES, likely)[group]
        kept = truth[inside], predicted[inside]
        each = jaccard_score(*kept, labels=present, average=None, zero_division=0)
        assert [one["iou"] for one in listed] == pytest.approx(each)
        assert scores["Jaccard"] == pytest.approx(jaccard_score(*kept, labels=present, average="micro"))
        expected = [average_precision_score(kept[0] == number, likely[inside, number - 1]) for number in present]
        assert [one["average_precision"] for one in listed] == pytest.approx(expected)
        printed = [iou / (1 - iou) if iou < 1 else np.inf for iou in each]  # TP/(FP+FN) from TP/(TP+FP+FN)
        infinite = np.isinf(printed).any()
        assert scores["Jaccard as printed"] == (None if infinite else pytest.approx(np.mean(printed)))


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(-60, 60), min_size=3, max_size=3), min_size=1, max_size=5))
def test_log_odds_are_those_of_many_digits(logits):
    rows = np.array(logits)
    with localcontext(prec=80):
        powers = [[Decimal(value).exp() for value in row] for row in logits]
        wanted = [[float((p / (sum(row) - p)).ln()) for p in row] for row in powers]
    found = log_odds(torch.from_numpy(rows))
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-9)


class Levels(Method):
    """Features whose class is mostly the largest, by more in some patches than in others."""

    label = fingerprint = "levels"

    def features(self, patches, radius):
        labels = PatchTruth.of(patches).labels
        random = np.random.default_rng(0)
        levels = 2 * random.random((*labels.shape, labels.max() + 1)) + np.eye(labels.max() + 1)[labels]
        return torch.from_numpy(levels).float()


def test_certain_answers_are_ranked_by_how_certain_they_are(patches, monkeypatch):
    """Right and wrong answers whose float32 probabilities are 1: ties would count against the method."""
    truth = PatchTruth.of(patches)
    count = len(truth.classes)
    weight = 60 * torch.eye(count + 1)[1:]
    probe = Probe(truth.classes, weight, torch.zeros(count))
    monkeypatch.setattr(segmentation, "fit_probe", lambda *arguments, **options: probe)
    logits = 60.0 * Levels().features(patches, 0.2).double().numpy()[..., 1:]
    assert (torch.from_numpy(logits).float().softmax(dim=-1) == 1).any()
    kept = truth.labels > 0
    scores = logits[kept]
    odds = [scores[:, k] - logsumexp(np.delete(scores, k, axis=1), axis=1) for k in range(count)]
    wanted = [average_precision_score(truth.labels[kept] == k + 1, odds[k]) for k in range(count)]
    told = Segmentation(split="same-images").measure(Levels(), patches)
    assert told["groups"]["all"]["mAP"] == pytest.approx(np.mean(wanted), abs=1e-6)


def test_a_perfect_answer_scores_one_and_its_printed_jaccard_is_infinite():
    truth = np.array([1, 2, 3, 3, 4])
    scores = group_scores(truth, truth, CLASSES, np.eye(5)[truth - 1])
    for group in ("stuff", "things", "all"):
        told, _ = scores[group]
        assert (told["mAP"], told["mIoU"], told["Jaccard"], told["Jaccard as printed"]) == (1, 1, 1, None)


def test_a_group_that_nothing_belongs_to_is_left_out():
    assert set(group_scores(np.array([1, 2]), np.array([1, 2]), CLASSES)) == {"stuff", "all"}


def test_the_ceiling_is_one_and_the_floor_the_share_of_each_class(patches):
    protocol = Segmentation(split="same-images")
    truth = protocol.measure(Truth(), patches)["groups"]["all"]
    assert (truth["mAP"], truth["mIoU"], truth["Jaccard"]) == pytest.approx((1, 1, 1))
    held_out = Segmentation(l2=0.01).measure(Chance(), patches)
    labels = PatchTruth.of(patches).labels
    shares = [(labels == number).sum() / (labels > 0).sum() for number in np.unique(labels[labels > 0])]
    assert held_out["groups"]["all"]["mAP"] == pytest.approx(np.mean(shares), abs=0.12)


def test_stuff_goes_by_class_and_things_one_by_one(patches):
    names = {label.name for label in PatchTruth.of(patches).classes}
    assert names == {"wall", "floor", "table 2", "chair 3", "chair 4"}


def test_what_the_probe_was_never_shown_is_left_out_and_counted(tmp_path):
    shots = room.shots(6)
    for number, shot in enumerate(shots):  # each frame's chair is another one
        shot.instance = np.where(shot.semantic == 5, 50 + number, shot.instance).astype(np.int32)
    write(tmp_path / "room", shots)
    patches = read_patches(load_scene(tmp_path / "room"), (9, 12))
    told = Segmentation().measure(Truth(), patches)
    theirs = MaskPredictions(
        masks(tmp_path / "masks", patches, {label.id: label.name for label in PatchTruth.of(patches).classes})
    )
    by_masks = Segmentation().measure(theirs, patches)
    counted = ("patches", "straddling", "absent classes", "absent patches")
    assert [by_masks[name] for name in counted] == [told[name] for name in counted]  # the same patches for everyone
    assert told["absent classes"] > 0
    assert told["absent patches"] > 0
    assert told["groups"]["all"]["mIoU"] == 1
    assert not {each["name"] for each in told["classes"]} & {f"chair {50 + number}" for number in range(6)}


def test_a_scene_without_things_has_no_column_of_things(tmp_path):
    shots = room.shots(6)
    for shot in shots:
        things = np.isin(shot.semantic, [5, 7])
        shot.semantic, shot.instance = np.where(things, 0, shot.semantic), np.where(things, 0, shot.instance)
    write(tmp_path / "room", shots)
    outcome = run(Segmentation(), [Truth()], {"unseen": [tmp_path / "room"]}, folder=tmp_path / "kept")
    assert "things" not in outcome.parts[0].measured["groups"]
    table = Segmentation().tables(outcome)[0]
    assert "No things in room." in table.notes[1]
    assert table.rows[0].cells[3] is None


def test_frames_and_label_maps_that_cannot_be_read_do_not_lose_the_scene(tmp_path):
    write(tmp_path / "room", room.shots(8))
    names = [shot.name for shot in room.shots(8)]
    for damaged in (f"images/{names[0]}.png", f"semantic/{names[0]}.png", f"semantic/{names[3]}.png"):
        (tmp_path / "room" / damaged).write_bytes(b"no picture")
    with pytest.warns(UserWarning, match="1 of 8 frames are left out"):
        patches = read_patches(load_scene(tmp_path / "room"), (9, 12))
    with pytest.warns(UserWarning, match=f"labels of 1 of 7 frames are left out: frame {names[3]}"):
        known = PatchTruth.of(patches)
    whole = read_patches(load_scene(write(tmp_path / "whole", room.shots(8))), (9, 12))
    expected = PatchTruth.of(whole).labels[1:]
    expected[2] = 0
    assert np.array_equal(known.labels, expected)
    with pytest.warns(UserWarning, match="labels of 1"):
        assert Segmentation(split="same-images").measure(Truth(), patches)["groups"]["all"]["mIoU"] == 1


def test_a_probe_of_other_scenes_goes_by_the_names_of_classes(tmp_path, tokens):
    """Against the task's own probe, and scikit-learn's Jaccard index."""
    fitted, tested = (write(tmp_path / name, room.shots(count)) for name, count in (("one", 6), ("two", 8)))
    method = method_of("classic", MethodOptions(resolution=None, cache=tokens))
    protocol = Segmentation(probe=(str(fitted),))
    scene = load_scene(tested)
    patches = read_patches(scene, method.grid(room.WIDTH, room.HEIGHT))
    told = protocol.measure(method, patches)
    probe = fit_probe(labelled_patches(scene_features(method.model, load_scene(fitted), tokens)))
    shown = labelled_patches(scene_features(method.model, scene, tokens))
    truth = same_names(shown.classes, probe.classes)[shown.labels.numpy()]
    predicted = 1 + probe.logits(shown.features).argmax(dim=1).numpy()
    wanted = jaccard_score(truth, predicted, labels=np.unique(truth), average="macro")
    assert told["groups"]["all"]["mIoU"] == pytest.approx(wanted)
    assert {each["name"] for each in told["classes"]} == {"wall", "floor", "table", "chair"}
    ceiling = protocol.measure(Truth(), patches)["groups"]["all"]
    assert (ceiling["mAP"], ceiling["mIoU"]) == (1, 1)
    theirs = MaskPredictions(masks(tmp_path / "masks", patches, {}))
    with pytest.raises(EvaluationError, match="masks of single things"):
        protocol.measure(theirs, patches)
    before = protocol.fingerprint()
    write(fitted, room.shots(5))
    assert Segmentation(probe=(str(fitted),)).fingerprint() != before  # finished parts are of that probe


def test_a_scene_without_labels_is_one_sentence(tmp_path):
    layouts.tum(tmp_path, room.shots(4))
    with pytest.raises(LocusError, match="has no labels"):
        Segmentation().measure(Truth(), read_patches(load_scene(tmp_path)))


def masks(folder, patches, names, shift=0):
    """The truth as a system's masks, ids moved on by `shift`."""
    (folder / patches.scene.name).mkdir(parents=True)
    targets = PatchTruth.of(patches).targets
    for row in range(len(patches)):
        ids = targets.of(patches.frame(row)).astype(np.uint16)
        ids[ids > 0] += shift
        Image.fromarray(ids).save(folder / patches.scene.name / f"{patches.frame(row).name}.png")
    (folder / f"{patches.scene.name}.json").write_text(json.dumps(names))
    return folder


def test_masks_made_elsewhere_score_by_name_and_with_an_oracle_without(patches, tmp_path):
    classes = PatchTruth.of(patches).classes
    right = masks(tmp_path / "right", patches, {label.id + 7: label.name for label in classes}, 7)
    wrong = masks(tmp_path / "wrong", patches, {label.id: f"thing {label.id + 40}" for label in classes})
    protocol = Segmentation()
    told = protocol.measure(MaskPredictions(right), patches)["groups"]
    assert told["all"]["mIoU"] == 1
    assert told["all"]["mAP"] is None
    assert protocol.measure(MaskPredictions(wrong), patches)["groups"]["all"]["mIoU"] == 0
    assert protocol.measure(MaskPredictions(wrong, oracle=True), patches)["groups"]["all"]["mIoU"] == 1


def test_bad_masks_are_one_sentence(patches, tmp_path):
    folder = masks(tmp_path / "masks", patches, {1: "wall"})
    with pytest.raises(EvaluationError, match="does not name"):
        Segmentation().measure(MaskPredictions(folder), patches)
    (folder / f"{patches.scene.name}.json").write_text("[]")
    with pytest.raises(EvaluationError, match="must be an object of ids and names"):
        Segmentation().measure(MaskPredictions(folder), patches)
    mask = folder / patches.scene.name / f"{patches.frame(0).name}.png"
    mask.write_bytes(mask.read_bytes()[:60])
    with pytest.raises(LocusError, match=f"{mask.name} is (damaged|not an image)"):
        Segmentation().measure(MaskPredictions(folder), patches)
    mask.unlink()
    with pytest.raises(EvaluationError, match=f"{mask.name} is missing"):
        Segmentation().measure(MaskPredictions(folder), patches)
    with pytest.raises(EvaluationError, match="does not exist"):
        MaskPredictions(tmp_path / "nowhere")


def test_the_oracle_names_a_segment_after_what_it_covers_most():
    truth = np.array([[1, 1, 2, 0]])
    named = oracle_names(Segments(np.array([[4, 4, 4, 5]], np.int32), {4: "x", 5: "y"}), truth, {1: "wall", 2: "floor"})
    assert named.names == {4: "wall"}


def test_mask2former_gives_masks_of_the_images_size(patches, tmp_path, monkeypatch):
    torch.manual_seed(0)
    swin = transformers.SwinConfig(
        image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1], window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = transformers.Mask2FormerConfig(
        backbone_config=swin, hidden_dim=32, feature_size=32, mask_feature_size=32, num_attention_heads=2,
        encoder_layers=1, decoder_layers=2, num_queries=6, encoder_feedforward_dim=16, dim_feedforward=16,
        id2label={0: "wall-other-merged", 1: "chair"},
    )  # fmt: skip
    transformers.Mask2FormerForUniversalSegmentation(config).save_pretrained(tmp_path)
    method = Mask2Former(weights=tmp_path)
    run_network = method.network.forward

    def forced(**images):
        """Its fourth query sees a wall in the left half of the image, its fifth a chair in the right one."""
        output = run_network(**images)
        sides = torch.zeros_like(output.masks_queries_logits)
        sides[:, [3, 4], :, : sides.shape[-1] // 2] = torch.tensor([9.0, -9.0])[:, None, None]
        sides[:, [3, 4], :, sides.shape[-1] // 2 :] = torch.tensor([-9.0, 9.0])[:, None, None]
        classes = torch.tensor([[0.0, 0.0, 9.0]]).repeat(6, 1)
        classes[3], classes[4] = torch.tensor([9.0, 0.0, 0.0]), torch.tensor([0.0, 9.0, 0.0])
        return replace(output, class_queries_logits=classes[None], masks_queries_logits=sides)

    monkeypatch.setattr(method.network, "forward", forced)
    segments = method.segments(patches, 0)
    assert segments.ids.shape == (room.HEIGHT, room.WIDTH)
    assert segments.names == {1: "wall", 2: "chair 2"}
    assert set(segments.ids[:, 3]) == {1}
    assert set(segments.ids[:, -3]) == {2}


def test_mask2former_without_weights_is_a_row_that_says_so(tmp_path):
    transformers.Mask2FormerConfig().save_pretrained(tmp_path)
    (method, _) = methods_of(
        ["mask2former", "random"], MethodOptions(), {"mask2former": lambda: Mask2Former(weights=tmp_path)}
    )
    assert isinstance(method, Unavailable)
    assert "does not hold the weights of a Mask2Former" in method.reason


def test_the_command_draws_truth_beside_prediction(patches, tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    words = ["eval", "segmentation", str(patches.scene.folder), "--cache", str(tokens), "--methods", "classic", "truth"]
    assert main([*words, "--l2", "0.01", "--report", str(tmp_path / "report")]) == 0
    assert "mIoU, things" in capsys.readouterr().out
    assert "data:image/jpeg" in (tmp_path / "report" / "report.html").read_text()
