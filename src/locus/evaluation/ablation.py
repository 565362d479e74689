"""Ablation: a grid of trainings, each evaluated on the same unseen places, and drawn setting by setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from locus.evaluation.bootstrap import estimate
from locus.evaluation.figures import Line, line_figure
from locus.evaluation.methods import ModelMethod
from locus.evaluation.place import EvaluationError
from locus.evaluation.retrieval import Retrieval
from locus.evaluation.runner import Outcome, run
from locus.evaluation.tables import Column, Table
from locus.model import LoCUS
from locus.training import Settings, train

# The paper's symbols for what can be varied.
SYMBOLS = {"ρ": "radii", "rho": "radii", "κ": "kappa", "τ": "tau"}


@dataclass(frozen=True)
class Variant:
    """One training of the grid."""

    varied: Mapping[str, str]
    """The settings that differ, as they were given."""
    settings: Settings

    @property
    def name(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.varied.items())


def grid(base: Sequence[str], varied: Sequence[str]) -> list[Variant]:
    """Every combination of `name=value,value,…` over the settings `name=value`."""
    settings = replace(Settings(), **{name: _read(name, text) for name, text in map(_split, base)})
    options: dict[str, list[str]] = {}
    for name, text in map(_split, varied):
        if name in options:
            raise EvaluationError(f"{name} is varied twice; name its values once, with commas between them")
        options[name] = text.split(",")
    if not options:
        raise EvaluationError("name what to vary, such as --vary kappa=2.5,50 head=linear,blocks")
    variants = []
    for values in product(*options.values()):
        chosen = dict(zip(options, values, strict=True))
        changed = {name: _read(name, text) for name, text in chosen.items()}
        variants.append(Variant(chosen, replace(settings, **changed)))
    return variants


def _split(word: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    name = SYMBOLS.get(name, name).replace("-", "_")
    known = [field.name for field in fields(Settings)]
    if not equals or name not in known:
        raise EvaluationError(f"{word} is no setting; write name=value, with one of {', '.join(known)}")
    return name, text


def _read(name: str, text: str) -> Any:
    """A setting's value, by the type that it has."""
    hint = get_type_hints(Settings)[name]
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if type(None) in get_args(hint) else [hint]
    if text == "none" and type(None) in get_args(hint):
        return None
    if kinds[0] is bool:
        if text not in ("true", "false"):
            raise EvaluationError(f"{name} is true or false, not {text}")
        return text == "true"
    try:
        if get_origin(kinds[0]) is tuple:  # several would need a comma, which separates variants: a plus joins them
            return tuple(float(part) for part in text.split("+"))
        if kinds[0] in (int, float):
            return kinds[0](text)
    except ValueError:
        raise EvaluationError(f"{name} is a number, not {text}") from None
    choices = get_args(kinds[0])
    if choices and text not in choices:
        raise EvaluationError(f"{name} is {' or '.join(map(str, choices))}, not {text}")
    return text


def ablate(
    variants: Sequence[Variant],
    protocol: Retrieval,
    scenes: Sequence[Path],
    training: Sequence[str],
    val: Sequence[str],
    out: Path,
    *,
    cache: Path | None = None,
    progress: bool = False,
) -> Outcome:
    """Train every variant in its own folder of `out` (what is finished is not done again) and evaluate it."""
    methods = []
    for variant in variants:
        folder = out / variant.name
        train(training, folder, variant.settings, val=val, cache=cache, progress=progress)
        method = ModelMethod(variant.name, LoCUS.from_pretrained(folder), cache)
        methods.append(method)
    return run(protocol, methods, {"unseen": scenes}, progress=progress)


def _values(outcome: Outcome, label: str, view: str) -> np.ndarray:
    """AP of every place, mean over batches and radii."""
    return np.array(
        [
            np.mean([batch[view]["AP"] for batches in part.measured["radii"].values() for batch in batches])
            for part in outcome.of(label)
        ]
    )


def tables(outcome: Outcome, variants: Sequence[Variant]) -> list[Table]:
    """One row a variant."""
    names = list(variants[0].varied)
    rows = []
    for method in outcome.methods:
        if isinstance(method, ModelMethod):
            cells = [estimate(_values(outcome, method.label, view)) for view in ("cross-view", "all pairs")]
            rows.append(outcome.row(method, cells))
    columns = [Column("AP, cross-view"), Column("AP, all pairs")]
    notes = [
        f"One training each: differences within the noise between seeds mean nothing; vary seed too. {len(variants)} "
        f"trainings over {', '.join(names)}, evaluated on {len(outcome.scenes)} places that chose no checkpoint.",
        "In brackets: 95 % of bootstrap draws of places.",
    ]
    return [Table("Ablation", columns, rows, notes)]


def figures(outcome: Outcome, variants: Sequence[Variant]) -> list[tuple[str, str]]:
    """A panel for each setting: cross-view AP at each of its values, mean over all else."""
    drawn = []
    for name in variants[0].varied:
        values = list(dict.fromkeys(variant.varied[name] for variant in variants))
        means = []
        for value in values:
            same = [variant.name for variant in variants if variant.varied[name] == value]
            measured = [found.mean() for each in same if len(found := _values(outcome, each, "cross-view"))]
            means.append(np.mean(measured) if measured else np.nan)
        line = Line("mean over the other settings", np.arange(len(values), dtype=float), np.array(means))
        drawn.append((f"Cross-view AP against {name}", line_figure({"": [line]}, name, "AP", ticks=values)))
    return drawn
