"""From a word on the command line to a method."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from locus import backbones
from locus.backbones import Backbone
from locus.errors import LocusError
from locus.evaluation.masks import Mask2Former
from locus.evaluation.matchers import KEYPOINT_MATCHERS
from locus.evaluation.methods import Chance, Competitor, Method, ModelMethod, Truth, Unavailable
from locus.evaluation.scene_patches import EvaluationError
from locus.features.reduction import reduced_model
from locus.model import CONFIG, LoCUS, shipped
from locus.opening import read_text
from locus.scenes import Scene
from locus.scenes.collection import find_scenes, open_scenes
from locus.scenes.load import AS_STATED, SceneReading

# The paper's names of its baselines.
SHORT = {"dino": "dino-vitb8", "dinov2": "dinov2-base", "dinov3": "dinov3-vitb16", "clip": "clip-vitb16"}
WORDS: dict[str, Callable[[], Method]] = {"truth": Truth, "random": Chance}
MASKS: dict[str, Callable[[], Competitor]] = {
    "mask2former": Mask2Former,
    "mask2former+oracle": partial(Mask2Former, oracle=True),
}
PREDICTIONS = "predictions:"
BACKBONES = ("classic", *SHORT, *backbones.VARIANTS)
DIMENSION = 64  # of the paper's features, and of what backbones are reduced to

Reduction = Literal["pca", "whitened", "full"]
SPEC = re.compile(r"(?P<name>[^+@]+)(?:@(?P<layer>\d+))?(?:\+(?P<reduction>pca|whitened|full))?")


@dataclass(frozen=True)
class MethodOptions:
    """What methods are made with."""

    fit: Sequence[str | Path] = ()
    """Scenes that PCA is fitted to: those trained on."""
    resolution: int | None = 252
    """Pixels of an image's shorter side for bare backbones."""
    cache: Path | None = None
    reading: SceneReading = AS_STATED
    progress: bool = False

    @cached_property
    def scenes(self) -> list[Scene]:
        return open_scenes(find_scenes(self.fit), self.reading)


def methods_of(
    words: Sequence[str], options: MethodOptions, more: Mapping[str, Callable[[], Competitor]] | None = None
) -> list[Competitor | Unavailable]:
    """A method for every word, in order, or why it is not available. `more`: words of one benchmark."""
    made: list[Competitor | Unavailable] = []
    for word in dict.fromkeys(words):
        method = _attempted(more[word], word) if more and word in more else method_of(word, options)
        if isinstance(method, Competitor) and any(method.label == other.label for other in made):
            method.label = word
        made.append(method)
    if not any(isinstance(method, Competitor) for method in made):
        reasons = "; ".join(f"{each.label}: {each.reason}" for each in made if isinstance(each, Unavailable))
        raise EvaluationError(f"there is no method to evaluate: {reasons or 'name some with --methods'}")
    return made


def _attempted(make: Callable[[], Competitor], word: str) -> Competitor | Unavailable:
    try:
        return make()
    except EvaluationError:  # of a file of predictions, which can be put right
        raise
    except LocusError as error:
        return Unavailable(word, str(error))


def method_of(word: str, options: MethodOptions) -> Competitor | Unavailable:
    """`truth`, `random`, a trained model, or a backbone with what is done to its tokens."""
    if word in WORDS:
        return WORDS[word]()
    for task, words in {"pose": KEYPOINT_MATCHERS, "segmentation": MASKS}.items():
        if word in words:
            raise EvaluationError(f"{word} is only for `locus eval {task}`")
    if word.startswith(PREDICTIONS):
        raise EvaluationError(f"{word}: predictions are only for `locus eval pose`, `segmentation` and `protocol`")
    name, layer, reduction = parsed(word)
    if not _bare(name):
        _refuse_typo(name)
        if layer is not None or reduction == "full":
            raise EvaluationError(f"{word}: a trained model has its own layer; name it alone, with +pca or +whitened")
        return _attempted(lambda: _trained(name, reduction, options), word)
    try:
        backbone = backbones.load(SHORT.get(name, name), layer)
    except LocusError as error:
        return Unavailable(word, str(error))
    return reduced(backbone, reduction, options)


def _refuse_typo(name: str) -> None:
    """A trained model is a folder, comes with LoCUS, or is an owner/name of the hub; anything else is misspelt."""
    models = (shipped.DEFAULT, *shipped.MODELS)
    if "/" in name or Path(name).is_dir() or name in models:
        return
    near = get_close_matches(name, [*models, *BACKBONES, *WORDS, *KEYPOINT_MATCHERS, *MASKS], 1)
    advice = f"did you mean {near[0]}?" if near else "`locus weights list` shows the backbones"
    raise EvaluationError(f"{name} is an unknown method: no folder, no model and no backbone of that name; {advice}")


def parsed(word: str) -> tuple[str, int | None, Reduction | None]:
    """NAME[@LAYER][+pca|+whitened|+full]; a folder of that very name is meant first."""
    match = SPEC.fullmatch(word)
    if Path(word).is_dir() or match is None:
        return word, None, None
    layer = match["layer"]
    return match["name"], None if layer is None else int(layer), match["reduction"]  # ty: ignore[invalid-return-type]


def _trained(name: str, reduction: Reduction | None, options: MethodOptions) -> ModelMethod:
    """A trained model; or, reduced by PCA, what it was before training: its own pretrained blocks as they were."""
    model, label = LoCUS.from_pretrained(name), Path(name).name
    if reduction is None:
        return ModelMethod(label, model, options.cache)
    blocks = model.config["blocks"] if model.config["head"] == "blocks" else 0
    untrained = {"dimension": model.dimension, "resolution": model.resolution, "blocks": blocks}
    return _by_pca(f"{label} untrained", model.backbone, reduction, options, **untrained)


def reduced(backbone: Backbone, reduction: Reduction | None, options: MethodOptions) -> ModelMethod:
    """The bare backbone, its tokens reduced to 64 dimensions by PCA; those of no more than 64 are kept as they are."""
    named = backbone.name if backbone.name == "classic" else f"{Path(backbone.name).name}@{backbone.layer}"
    if reduction == "full" or (reduction is None and backbone.dimension <= DIMENSION):
        model = LoCUS(backbone, head="identity", resolution=options.resolution)
        return ModelMethod(f"{named} {backbone.dimension}-d", model, options.cache)
    dimension = min(DIMENSION, backbone.dimension)
    return _by_pca(named, backbone, reduction, options, dimension=dimension, resolution=options.resolution)


def _by_pca(
    label: str, backbone: Backbone, reduction: Reduction | None, options: MethodOptions, **model: Any
) -> ModelMethod:
    if not options.fit:
        raise EvaluationError(f"PCA of {label} needs scenes to be fitted to: name those trained on, with --fit")
    whiten = reduction == "whitened"
    made = {"whiten": whiten, "cache": options.cache, "progress": options.progress}
    network = reduced_model(backbone, options.scenes, **model, **made)
    return ModelMethod(f"{label} {'whitened PCA' if whiten else 'PCA'}-{network.dimension}", network, options.cache)


def predictions(words: Sequence[str], read: Callable[[Path], Competitor]) -> dict[str, Callable[[], Competitor]]:
    """What reads the file of each word `predictions:FILE`."""
    files = {word: Path(word.removeprefix(PREDICTIONS)) for word in words if word.startswith(PREDICTIONS)}
    return {word: partial(read, file) for word, file in files.items()}


def _bare(name: str) -> bool:
    """Whether a name is a backbone's and not a trained model's."""
    hubs = (variant.hub for variant in backbones.VARIANTS.values())
    config = Path(name) / CONFIG
    return name in {*BACKBONES, *hubs} or (config.is_file() and "backbone_fingerprint" not in read_text(config))
