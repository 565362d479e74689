"""Settings of several trainings: every combination of what is varied, read from words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, get_args, get_origin, get_type_hints

from locus.training.settings import Settings, TrainingError

# The paper's symbols for what can be varied.
SYMBOLS = {"ρ": "radii", "rho": "radii", "κ": "kappa", "τ": "tau"}
SCENES = "scenes"  # how many of the training scenes are taken: no setting, but it can be varied


@dataclass(frozen=True)
class TrainingVariant:
    """One training of the grid."""

    varied: Mapping[str, str]
    """The settings that differ, as they were given."""
    settings: Settings
    scenes: int | None = None
    """How many of the training scenes, the first ones, it is given. None: all."""

    @property
    def name(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.varied.items())


def variants_of(base: Sequence[str], varied: Sequence[str]) -> list[TrainingVariant]:
    """Every combination of `name=value,value,…` over the settings `name=value`; `scenes` is how many to train on."""
    settings = replace(Settings(), **{name: _read(name, text) for name, text in map(_split, base)})
    options: dict[str, list[str]] = {}
    for name, text in (_split(word, SCENES) for word in varied):
        if name in options:
            raise TrainingError(f"{name} is varied twice; name its values once, with commas between them")
        options[name] = text.split(",")
    if not options:
        raise TrainingError("name what to vary, such as --vary kappa=2.5,50 head=linear,blocks")
    variants = []
    for values in product(*options.values()):
        chosen = dict(zip(options, values, strict=True))
        changed = {name: _read(name, text) for name, text in chosen.items()}
        scenes = changed.pop(SCENES, None)
        variants.append(TrainingVariant(chosen, replace(settings, **changed), scenes))
    return variants


def _split(word: str, *more: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    name = SYMBOLS.get(name, name).replace("-", "_")
    known = [*(field.name for field in fields(Settings)), *more]
    if not equals or name not in known:
        raise TrainingError(f"{word} is no setting; write name=value, with one of {', '.join(known)}")
    return name, text


def _read(name: str, text: str) -> Any:
    """A setting's value, by the type that it has."""
    hint = int if name == SCENES else get_type_hints(Settings)[name]
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if type(None) in get_args(hint) else [hint]
    if text == "none" and type(None) in get_args(hint):
        return None
    if kinds[0] is bool:
        if text not in ("true", "false"):
            raise TrainingError(f"{name} is true or false, not {text}")
        return text == "true"
    try:
        if get_origin(kinds[0]) is tuple:  # several would need a comma, which separates variants: a plus joins them
            return tuple(float(part) for part in text.split("+"))
        if kinds[0] in (int, float):
            return kinds[0](text)
    except ValueError:
        raise TrainingError(f"{name} is a number, not {text}") from None
    choices = get_args(kinds[0])
    if choices and text not in choices:
        raise TrainingError(f"{name} is {' or '.join(map(str, choices))}, not {text}")
    return text
