"""Ablations: what may be varied, and a whole grid of two tiny trainings."""

import statistics

import pytest

from locus.cli import main
from locus.errors import LocusError
from locus.evaluation import ablation, runner
from locus.evaluation.methods import Chance
from locus.evaluation.outcome import MeasuredPart, Outcome
from locus.evaluation.retrieval import Retrieval
from locus.training.settings_grid import variants_of

BASE = [
    "backbone=classic",
    "layer=none",
    "head=linear",
    "dimension=16",
    "resolution=none",
    "frames_per_batch=6",
    "landmarks=40",
]
BASE += ["radii=0.3", "steps=2", "validate_every=2", "checkpoint_every=2", "warmup=1"]


def test_a_grid_is_every_combination_in_the_settings_own_types():
    variants = variants_of(BASE, ["kappa=2.5,50", "rho=0.2,0.2+0.4", "exclude-same-frame=true,false"])
    assert len(variants) == 8
    assert variants[0].name == "kappa=2.5 radii=0.2 exclude_same_frame=true"
    assert variants[-1].settings.kappa == 50
    assert variants[-1].settings.radii == (0.2, 0.4)
    assert variants[-1].settings.exclude_same_frame is False
    assert variants[0].settings.layer is None
    assert variants[0].settings.steps == 2


def test_the_number_of_training_scenes_can_be_varied():
    variants = variants_of(BASE, ["scenes=2,4", "seed=0,1"])
    assert [(variant.scenes, variant.settings.seed) for variant in variants] == [(2, 0), (2, 1), (4, 0), (4, 1)]
    assert variants_of(BASE, ["seed=0"])[0].scenes is None


def test_over_seeds_there_is_a_mean_and_a_standard_deviation():
    reached = {"kappa=2 seed=0": (0.2, 0.4), "kappa=2 seed=1": (0.4, 0.8), "kappa=5 seed=0": (0.5, 0.7)}
    varied = {label: dict(word.split("=") for word in label.split()) for label in reached}
    parts = [
        MeasuredPart(
            label, scene, "unseen", {"radii": {"0.2": [{"cross-view": {"AP": value}, "all pairs": {"AP": 1.0}}]}}
        )
        for label, values in reached.items()
        for scene, value in zip(("one", "two"), values, strict=True)
    ]
    methods = [Chance() for _ in reached]
    for method, label in zip(methods, reached, strict=True):
        method.label = label
    single, seeds = ablation.tables(Outcome(Retrieval(), methods, parts, {}), varied)
    assert [row.cells[0].value for row in single.rows] == pytest.approx([0.3, 0.6, 0.6])
    assert [row.label for row in seeds.rows] == ["kappa=2", "kappa=5"]
    assert seeds.rows[0].cells[:2] == pytest.approx([0.45, statistics.stdev([0.3, 0.6])])
    assert seeds.rows[1].cells[:2] == [pytest.approx(0.6), None]


@pytest.mark.parametrize(
    ("varied", "words"),
    [
        ([], "name what to vary"),
        (["colour=red"], "no setting"),
        (["kappa"], "no setting"),
        (["kappa=many"], "is a number"),
        (["radii=abc"], "radii is a number, not abc"),
        (["self_pair=true"], "no setting"),  # it is always left out; pairs of one frame are exclude_same_frame
        (["head=none"], "head is paper or"),
        (["exclude_same_frame=1"], "true or false"),
        (["scenes=few"], "scenes is a number"),
        (["kappa=1,2", "κ=3"], "varied twice"),
    ],
)
def test_what_cannot_be_varied_is_one_sentence(varied, words):
    with pytest.raises(LocusError, match=words):
        variants_of(BASE, varied)


def test_the_command_trains_evaluates_and_draws(rooms, tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    words = ["eval", "ablate", str(rooms / "first"), "--train", str(rooms / "second"), "--val", str(rooms / "unseen")]
    words += ["--vary", "kappa=2.5,50", "--base", *BASE, "--out", str(tmp_path / "grid"), "--cache", str(tokens)]
    words += ["--radii", "0.3", "--frames-per-batch", "6", "--batches", "1", "--landmarks", "20"]
    assert main(words) == 0
    assert "kappa=2.5" in capsys.readouterr().out
    assert (tmp_path / "grid" / "kappa=50" / "model.safetensors").is_file()
    assert "<svg" in (tmp_path / "grid" / "report.html").read_text()
    assert main([*words, "--vary", "scenes=2"]) == 2
    assert "scenes=2: --train names 1 scenes" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main([*words[:2], str(tmp_path / "empty"), *words[3:]]) == 1
    assert f"not measured: {tmp_path / 'empty'}" in capsys.readouterr().err
