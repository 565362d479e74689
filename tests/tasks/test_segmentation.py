"""The linear probe: the same answer as scikit-learn's, classes by name, and label maps at the images' size."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression

import locus
from locus.cli import main
from locus.errors import LocusError
from locus.evaluation.calibration import expected_calibration_error
from locus.scenes import patch_points
from locus.scenes.scene import LabelClass
from locus.tasks.patch_labels import (
    LabelledPatches,
    class_targets,
    labelled_patches,
    majority_labels,
    merged,
    object_targets,
    same_names,
)
from locus.tasks.probe import Probe, fit_probe
from locus.tasks.voting import probe_votes, vote
from tests.scenes import room
from tests.tasks import labelled_room

COLOURS = tuple(LabelClass(k, name, "thing") for k, name in enumerate(("red", "green", "blue", "never"), 1))


def blobs(count=300, seed=0, classes=COLOURS):
    """Points of three classes that overlap."""
    random = np.random.default_rng(seed)
    labels = random.integers(1, 4, count)
    centres = random.normal(size=(4, 5))
    features = (centres[labels] + random.normal(size=(count, 5))).astype(np.float32)
    frames = torch.arange(count) % 10
    return LabelledPatches(torch.from_numpy(features), torch.from_numpy(labels), frames, classes, 10, 0)


@pytest.mark.parametrize("l2", [1e-1, 1e-3, 1e-5])
def test_the_fit_is_scikit_learns(l2):
    patches = blobs()
    probe = fit_probe(patches, l2=l2)
    referee = LogisticRegression(C=1 / (l2 * len(patches.labels)), tol=1e-8, max_iter=10_000)
    referee.fit(patches.features.double().numpy(), patches.labels.numpy())
    assert [label.name for label in probe.classes] == ["red", "green", "blue"]
    assert np.allclose(probe.weight.numpy(), referee.coef_, atol=2e-3)
    ours = probe.logits(patches.features).softmax(dim=1).numpy()
    assert np.allclose(ours, referee.predict_proba(patches.features.numpy()), atol=1e-3)
    assert probe.accuracy(patches) == pytest.approx(referee.score(patches.features.numpy(), patches.labels.numpy()))


def test_probabilities_are_right_as_often_as_they_say_in_frames_that_the_fit_has_not_seen():
    """Few patches of many dimensions are fitted too well, so that scores are far too sure; the temperature mends it."""
    random = np.random.default_rng(0)
    labels, frames = torch.from_numpy(random.integers(1, 4, 4000)), torch.arange(4000) // 10
    centres = random.normal(size=(4, 80))
    features = torch.from_numpy((centres[labels] + 6 * random.normal(size=(4000, 80))).astype(np.float32))
    known = LabelledPatches(features[:800], labels[:800], frames[:800], COLOURS, 80, 0)
    probe = fit_probe(known, l2=1e-6)
    others, truth = features[800:], labels[800:].numpy() - 1
    assert probe.temperature > 1.2

    def distance(probabilities):
        best = probabilities.max(dim=1).values.double().numpy()
        return expected_calibration_error(best, probabilities.argmax(dim=1).numpy() == truth)

    assert distance(probe.probabilities(others)) < 0.05
    assert distance(probe.logits(others).softmax(dim=1)) > 0.1


def test_what_no_class_is_likely_for_is_unknown(tmp_path):
    probe = Probe(COLOURS[:2], torch.tensor([[2.0], [-2.0]]), torch.zeros(2), temperature=2.0)
    likely = 1 / (1 + np.exp(-2.0))  # of the first class, with features of 1
    assert np.allclose(probe.probabilities(torch.ones(1, 1)).numpy()[0], [likely, 1 - likely])
    sure, unsure = torch.ones(2, 2, 1), torch.full((2, 2, 1), 0.1)
    assert (probe.predict(sure, (4, 4), likely - 0.01) == 1).all()
    assert (probe.predict(sure, (4, 4), likely + 0.01) == 0).all()
    assert (probe.predict(unsure, (4, 4), 0.7) == 0).all()
    probe.save(tmp_path / "probe.safetensors")
    assert Probe.load(tmp_path / "probe.safetensors").temperature == 2


def test_the_fit_is_the_same_each_time_and_in_any_order():
    patches = blobs()
    first, again = fit_probe(patches), fit_probe(patches)
    assert torch.equal(first.weight, again.weight)
    assert torch.equal(first.bias, again.bias)
    order = torch.randperm(len(patches.labels), generator=torch.Generator().manual_seed(1))
    shuffled = replace(patches, features=patches.features[order], labels=patches.labels[order])
    assert torch.allclose(fit_probe(shuffled).weight, first.weight, atol=1e-3)


def test_separable_classes_are_told_apart_and_weights_stay_finite():
    features = torch.eye(3).repeat(20, 1)
    labels = torch.arange(1, 4).repeat(20)
    probe = fit_probe(LabelledPatches(features, labels, torch.zeros(60, dtype=torch.int64), COLOURS, 1, 0))
    assert torch.isfinite(probe.weight).all()
    assert torch.equal(probe.logits(features).argmax(dim=1) + 1, labels)


@pytest.mark.parametrize("l2", [0.0, -1.0, float("nan")])
def test_no_pull_to_zero_is_refused(l2):
    with pytest.raises(LocusError, match="l2 must be positive"):
        fit_probe(blobs(), l2=l2)


def test_one_class_is_not_enough():
    patches = blobs()
    with pytest.raises(LocusError, match="show 1 classes in 300 patches; it takes two"):
        fit_probe(replace(patches, labels=torch.ones_like(patches.labels)))


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 6), st.integers(6, 40), st.integers(6, 40))
def test_a_patch_has_the_label_that_most_of_it_has(seed, rows, columns, height, width):
    labels = np.random.default_rng(seed).integers(0, 3, (height, width)) * 5
    ours = majority_labels(labels, (rows, columns))
    for r in range(rows):
        for c in range(columns):
            inside = [
                labels[y, x]
                for y in range(height)
                for x in range(width)
                if int((y + 0.5) * rows / height) == r and int((x + 0.5) * columns / width) == c
            ]
            most = [label for label in set(inside) if inside.count(label) > 0.5 * len(inside)]
            assert ours[r, c] == (most[0] if most else 0)


def test_patches_that_straddle_are_left_out_as_told():
    labels = np.array([[1, 1, 2, 2], [1, 1, 2, 2], [1, 2, 0, 0], [2, 2, 0, 3]])
    assert majority_labels(labels, (2, 2)).tolist() == [[1, 2], [2, 0]]
    assert majority_labels(labels, (2, 2), share=0.8).tolist() == [[1, 2], [0, 0]]
    with pytest.raises(LocusError, match="from 0 to below 1"):
        majority_labels(labels, (2, 2), share=1.0)


def test_classes_are_matched_by_name_whatever_their_ids(tmp_path, scene):
    other = locus.load_scene(labelled_room.write(tmp_path / "other", count=4, renumber=10))
    assert {label.id for label in other.classes}.isdisjoint(label.id for label in scene.classes)
    parts = [labelled_patches(labelled_room.perfect(each, "instance")) for each in (scene, other)]
    both = merged(parts)
    assert [label.name for label in both.classes] == ["chair", "floor", "table", "wall"]
    assert both.count == 10
    assert len(both.labels) == sum(len(part.labels) for part in parts)
    first = len(parts[0].labels)
    for part, labels in zip(parts, (both.labels[:first], both.labels[first:]), strict=True):
        names = {label.id: label.name for label in part.classes}
        assert [names[int(k)] for k in part.labels] == [both.classes[int(k) - 1].name for k in labels]
    assert set(both.frames[first:].tolist()) == {6, 7, 8, 9}
    assert set(both.where([7, 2]).frames.tolist()) == {2, 7}


def test_a_table_of_names():
    given = (LabelClass(3, "wall", "stuff"), LabelClass(5, "sofa", "thing"))
    wanted = (LabelClass(1, "sofa", "thing"), LabelClass(2, "lamp", "thing"))
    assert same_names(given, wanted).tolist() == [0, 0, 0, 0, 0, 1]


def test_objects_are_stuff_by_class_and_things_one_by_one(scene):
    targets = object_targets(scene)
    names = {label.id: label.name for label in targets.classes}
    assert sorted(names.values()) == ["chair 3", "chair 4", "floor", "table 2", "wall"]
    assert {label.name: label.kind for label in targets.classes}["floor"] == "stuff"
    known = {0: "", **{k: name for k, (name, _) in room.CLASSES.items()}}
    for frame in scene:
        ours = np.vectorize({0: "", **names}.get)(targets.of(frame))
        truth = np.array(
            [
                known[s] + (f" {i}" if known[s] in ("chair", "table") else "")
                for s, i in zip(frame.semantic.ravel(), frame.instance.ravel(), strict=True)
            ]
        )
        assert (ours.ravel() == truth).all()


def test_a_probe_of_perfect_features_is_nearly_perfect(scene):
    seen = labelled_room.perfect(scene)
    targets = object_targets(scene)
    patches = labelled_patches(seen, targets)
    probe = fit_probe(patches.where(range(0, len(scene), 2)), l2=1e-4, objects=True)
    # The features do not tell floor from wall, which are one box.
    held_out = patches.where(range(1, len(scene), 2))
    thing = torch.tensor([label.kind == "thing" for label in patches.classes])[held_out.labels - 1]
    kept = {name: getattr(held_out, name)[thing] for name in ("features", "labels", "frames")}
    things = replace(held_out, **kept)
    assert probe.accuracy(things) > 0.95
    table = same_names(targets.classes, probe.classes)
    for row in (1, 3):
        predicted = probe.predict(seen.features[0, row], (room.WIDTH, room.HEIGHT))
        truth = table[targets.of(scene[row])]
        thing = np.isin(truth, [label.id for label in probe.classes if label.kind == "thing"])
        assert predicted.shape == truth.shape
        assert (predicted == truth)[thing].mean() > 0.8


def test_logits_are_blended_before_the_best_is_taken():
    probe = Probe(COLOURS[:2], torch.eye(2), torch.zeros(2))
    features = torch.tensor([[[1.0, 0.0], [0.0, 0.5]]])  # the line where both are as likely is at 2/3 of the way
    labels = probe.predict(features, (600, 10))
    assert set(np.unique(labels)) == {1, 2}
    border = (labels[5] == 1).sum()
    assert border == pytest.approx(150 + 300 * 2 / 3, abs=2)
    assert (labels == labels[0]).all()


def test_probes_survive_a_file(tmp_path):
    probe = replace(fit_probe(blobs()), scale=1, objects=True, model="runs/a", fingerprint="abc")
    probe.save(tmp_path / "probe.safetensors")
    loaded = Probe.load(tmp_path / "probe.safetensors")
    assert torch.equal(loaded.weight, probe.weight)
    assert torch.equal(loaded.bias, probe.bias)
    for name in ("classes", "scale", "objects", "model", "fingerprint"):
        assert getattr(loaded, name) == getattr(probe, name)


def stored(path, weights=None, **changes):
    stated = {"version": 1, "classes": [], "scale": 0, "objects": False, "model": "", "fingerprint": ""} | changes
    weights = weights or {"weight": torch.zeros(0, 3), "bias": torch.zeros(0)}
    save_file(weights, path, metadata={"locus probe": json.dumps(stated)})


def test_files_that_are_no_probes_are_refused(tmp_path):
    file = tmp_path / "probe.safetensors"
    with pytest.raises(LocusError, match="does not exist"):
        Probe.load(file)
    file.write_bytes(b"something else")
    with pytest.raises(LocusError, match="damaged"):
        Probe.load(file)
    save_file({"weight": torch.zeros(2, 3)}, file)
    with pytest.raises(LocusError, match="a safetensors file, but no probe"):
        Probe.load(file)
    stored(file, version=2)
    with pytest.raises(LocusError, match="newer version"):
        Probe.load(file)
    stored(file, classes=[{"id": 1, "name": "wall", "kind": "stuff"}])
    with pytest.raises(LocusError, match="1 classes but weights"):
        Probe.load(file)
    stored(file, weights={"weight": torch.zeros(0, 3)})
    with pytest.raises(LocusError, match="damaged"):
        Probe.load(file)
    stored(file, classes=[{"id": 1}])
    with pytest.raises(LocusError, match=r"the header of .* is damaged \(at 'name'\); fit"):
        Probe.load(file)
    fit_probe(blobs()).save(file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(LocusError, match="damaged"):
        Probe.load(file)


def test_scenes_without_labels_are_refused(tmp_path):
    bare = locus.load_scene(labelled_room.write(tmp_path / "bare", labels=False))
    for targets in (class_targets, object_targets):
        with pytest.raises(LocusError, match="bare has no labels"):
            targets(bare)


def fit(folder, tmp_path, *more):
    words = ["segment", "fit", str(folder), "--model", "classic", "--cache", str(tmp_path / "cache")]
    return main([*words, "--out", str(tmp_path / "probe.safetensors"), *more])


def predict(tmp_path, *words):
    probe = str(tmp_path / "probe.safetensors")
    cache = ["--cache", str(tmp_path / "cache")]
    return main(["segment", "predict", probe, *map(str, words), "--out", str(tmp_path / "out"), *cache])


def test_the_commands_fit_and_predict_a_scene(folder, scene, tmp_path, capsys):
    assert fit(folder, tmp_path) == 0
    said = capsys.readouterr().out
    assert "of 4 classes in 1 scenes" in said
    assert predict(tmp_path, folder, "--min-probability", "0") == 0
    assert "0% of the pixels are unknown" in capsys.readouterr().out
    classes = json.loads((tmp_path / "out" / "classes.json").read_text())
    assert [each["name"] for each in classes] == ["chair", "floor", "table", "wall"]
    for frame in scene:
        with Image.open(tmp_path / "out" / "labels" / f"{frame.name}.png") as image:
            assert image.mode == "I;16"
            labels = np.asarray(image)
        assert labels.shape == frame.image.shape[:2]
        assert labels.min() >= 1
        assert labels.max() <= 4
        assert (tmp_path / "out" / "pictures" / f"{frame.name}.png").is_file()


def test_images_of_any_size_are_labelled(folder, scene, tmp_path, capsys):
    assert fit(folder, tmp_path, "--objects") == 0
    files = []
    for number, size in enumerate([(80, 60), (57, 91)]):
        files.append(tmp_path / f"{number}.png")
        Image.fromarray(scene[number].image).resize(size).save(files[-1])
    files[0].with_name("bad.png").write_bytes(b"no image")
    assert predict(tmp_path, *files, files[0].with_name("bad.png")) == 0
    assert "bad.png is left out" in " ".join(capsys.readouterr().err.split())
    assert np.asarray(Image.open(tmp_path / "out" / "labels" / "1.png.png")).shape == (91, 57)
    assert not (tmp_path / "out" / "labels" / "bad.png.png").exists()


def test_another_model_is_refused(folder, tmp_path, capsys):
    assert fit(folder, tmp_path) == 0
    probe = Probe.load(tmp_path / "probe.safetensors")
    assert probe.model == "classic"
    replace(probe, fingerprint="0123").save(tmp_path / "probe.safetensors")
    assert predict(tmp_path, folder) == 2
    assert "was fitted to features of classic (0123), but classic" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_classes_that_never_occur_are_named(tmp_path, capsys):
    root = labelled_room.write(tmp_path / "room")
    content = json.loads((root / "transforms.json").read_text())
    content["classes"].append({"id": 99, "name": "unicorn", "kind": "thing"})
    (root / "transforms.json").write_text(json.dumps(content))
    assert fit(root, tmp_path) == 0
    assert "1 classes have no patch and can never be predicted: unicorn" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--l2", "0"], "l2 must be positive"),
        (["--scale", "3"], "no scale 3"),
        (["--share", "1.5"], "from 0 to below 1"),
        (["--out", "."], "is a folder"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(folder, tmp_path, capsys, more, said):
    assert fit(folder, tmp_path, *more) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "probe.safetensors").exists()


@pytest.mark.parametrize("more", [[], ["--objects"]])
def test_the_labelled_frames_of_a_scene_are_learned_from(tmp_path, capsys, more):
    root = labelled_room.write(tmp_path / "room")
    content = json.loads((root / "transforms.json").read_text())
    for frame in content["frames"][:4]:
        del frame["semantic_file_path"], frame["instance_file_path"]
    (root / "transforms.json").write_text(json.dumps(content))
    assert fit(root, tmp_path, *more) == 0
    assert "2 of 6 frames of room have labels; the others are left out" in capsys.readouterr().out
    assert predict(tmp_path, root) == 0


def test_a_scene_without_labels_is_named(tmp_path, capsys):
    assert fit(labelled_room.write(tmp_path / "bare", labels=False), tmp_path) == 2
    assert "bare has no labels" in capsys.readouterr().err


@given(st.integers(0, 2**31), st.integers(0, 40), st.integers(0, 10))
def test_votes_are_the_mean_over_the_patches_nearby(seed, patches, places):
    random = np.random.default_rng(seed)
    points, opinions = random.uniform(0, 1, (patches, 3)), random.dirichlet(np.ones(4), patches).reshape(patches, 4)
    points[random.random(patches) < 0.2] = np.nan
    positions, radii = random.uniform(0, 1, (places, 3)), random.uniform(0.05, 0.8, places)
    means, counts = vote(points, opinions, positions, radii)
    for place in range(places):
        near = np.linalg.norm(points - positions[place], axis=1) <= radii[place]
        assert counts[place] == near.sum()
        truth = opinions[near].mean(axis=0) if near.any() else np.zeros(4)
        assert np.allclose(means[place], truth, atol=1e-6)


def test_a_voting_radius_is_positive():
    with pytest.raises(LocusError, match="must be positive"):
        vote(np.zeros((1, 3)), np.ones((1, 2)), np.zeros((1, 3)), 0.0)


def test_places_get_the_label_of_what_is_there(scene):
    """With features that know every class, spots on the table's top and the walls are labelled as what they are."""
    perfect = labelled_room.perfect(scene, "semantic")
    points = np.stack([patch_points(frame, labelled_room.GRID)[0] for frame in scene]).astype(np.float32)
    seen = replace(perfect, points=points)
    probe = fit_probe(labelled_patches(seen), l2=1e-5)
    spots = points[np.isfinite(points).all(axis=-1)].astype(np.float64)
    shares, patches = probe_votes(probe, seen, spots, 0.05)
    assert (patches > 0).all()
    assert np.allclose(shares.sum(axis=1), 1, atol=1e-5)
    names = np.array([label.name for label in probe.classes])[shares.argmax(axis=1)]
    top = (np.abs(spots[:, 2] - 0.7) < 0.01) & (np.abs(spots[:, 0] + 0.05) < 0.5) & (np.abs(spots[:, 1]) < 0.35)
    wall = (np.abs(np.abs(spots[:, :2]) - [2.0, 1.5]).min(axis=1) < 0.01) & (spots[:, 2] > 0.3)
    for name, rows in (("table", top), ("wall", wall)):
        assert rows.any()
        assert (names[rows] == name).mean() > 0.9
