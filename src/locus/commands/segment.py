"""The command `segment`: fit, predict."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from locus.commands import options
from locus.commands.options import check_first, network, say
from locus.errors import LocusError
from locus.model.shipped import DEFAULT
from locus.scenes import Scene
from locus.scenes.collection import find_scenes
from locus.scenes.load import AS_STATED
from locus.tasks.named_images import open_inputs


@dataclass(frozen=True)
class FitProbe:
    """Fit a linear classifier of patches to labelled scenes: classes are the same where their names are."""

    scenes: options.ScenePatterns
    out: Path
    """The probe, a .safetensors file."""
    model: options.ModelName = DEFAULT
    objects: options.Switch = False
    """Learn the single objects of one scene, as the paper does: stuff by its class, each thing by itself."""
    scale: options.Scale = 0
    l2: float | None = None
    """How strongly weights are drawn to zero. By default 1e-4, for objects 1e-6."""
    share: float = 0.5
    """A patch is of a class if more than this share of its pixels is; patches of which none is are left out."""
    cache: options.Cache = None
    reading: options.Reading = AS_STATED

    def run(self) -> int:
        check_first(self.out, model=self.model)
        loaded = [self.reading.load(path) for path in find_scenes(self.scenes)]
        if not loaded:
            raise LocusError("name the labelled scenes to learn from")
        if self.objects and len(loaded) > 1:
            raise LocusError("objects are those of one scene; give one, or leave --objects out")
        if self.out.is_dir():
            raise LocusError(f"{self.out} is a folder; name a file for the probe")
        from locus.features.dense import scene_features
        from locus.tasks.patch_labels import class_targets, labelled_frames, labelled_patches, merged, object_targets
        from locus.tasks.probe import fit_probe

        targets = [object_targets(scene) if self.objects else class_targets(scene) for scene in loaded]
        for number, scene in enumerate(loaded):
            if len(labelled := labelled_frames(scene)) < len(scene):
                say(f"{len(labelled)} of {len(scene)} frames of {scene.name} have labels; the others are left out")
                loaded[number] = labelled
        made_with = network(self.model)
        seen = (scene_features(made_with, scene, self.cache, progress=True) for scene in loaded)
        labelled = zip(seen, targets, strict=True)
        patches = merged([labelled_patches(*each, self.scale, self.share) for each in labelled])
        with Console(stderr=True).status("fitting") as status:
            probe = fit_probe(
                patches,
                l2=self.l2,
                scale=self.scale,
                objects=self.objects,
                model=made_with,
                source=made_with.source,
                report=lambda step, loss: status.update(f"fitting, step {step}: cross-entropy {loss:.4f}"),
            )
        probe.save(self.out)
        say(
            f"{len(patches.labels)} patches of {len(probe.classes)} classes in {len(loaded)} scenes, "
            f"{probe.accuracy(patches):.1%} of them classified correctly; "
            f"{patches.left_out} patches without a label, or with no label that covers enough of them, were left out"
        )
        say(f"Scores are divided by {probe.temperature:.2g}, as the last frames ask for, to be probabilities")
        named = {label.name for label in probe.classes}
        if never := [label.name for label in patches.classes if label.name not in named]:
            shown = ", ".join(never[:8]) + (", ..." if len(never) > 8 else "")
            say(f"{len(never)} classes have no patch and can never be predicted: {shown}")
        say(f"Wrote {self.out}")
        return 0


@dataclass(frozen=True)
class PredictLabels:
    """Label every pixel of images with a probe's classes.

    Writes labels/NAME.png (16 bits, the class's id), pictures/NAME.png (image, truth if there is one, prediction) and
    classes.json to a folder.
    """

    probe: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PROBE")]
    """A probe of `locus segment fit`."""
    images: options.Images
    out: Path
    """The folder to write."""
    model: str | None = None
    """The model the probe was fitted with. By default where it was then."""
    min_probability: float = 0.5
    """A pixel whose best class is less likely than this is unknown: 0 in the label map."""
    cache: options.Cache = None
    reading: options.Reading = AS_STATED
    map: Path | None = None
    """A map of the scene (`locus map`), whose landmarks are to be labelled by the patches within their radius: also
    writes landmarks.ply and landmarks.png, coloured by class, and landmarks.json."""

    def run(self) -> int:
        if self.out.exists() and not self.out.is_dir():
            raise LocusError(f"{self.out} is a file; name a folder for the label maps")
        check_first(folders=[self.out], model=self.model, maps=[] if self.map is None else [self.map])
        inputs = open_inputs(self.images, self.reading)
        from locus.features.dense import scene_features
        from locus.landmarks import LandmarkMap
        from locus.tasks.image_features import frame_features, image_features
        from locus.tasks.label_files import truths_of, write_classes, write_labels, write_landmarks
        from locus.tasks.probe import Probe

        probe = Probe.load(self.probe)
        world = None if self.map is None else LandmarkMap.load(self.map)
        scene = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], Scene) else None
        if world is not None and scene is None:
            raise LocusError("the landmarks of a map are labelled by one posed scene; give its folder alone")
        truths = {} if scene is None else truths_of(scene, probe)
        made_with = network(self.model or probe.model)
        probe.check(made_with)
        seen = None if scene is None else scene_features(made_with, scene, self.cache, progress=True)
        count, unknown = 0, 0.0
        for view in image_features(made_with, inputs, progress=True) if seen is None else frame_features(seen):
            labels = write_labels(self.out, view, probe, truths.get(view.image.name), self.min_probability)
            count, unknown = count + 1, unknown + float((labels == 0).mean())
        if not count:
            raise LocusError("none of the images could be read")
        write_classes(self.out, probe)
        say(f"Wrote label maps and pictures of {count} images, {len(probe.classes)} classes, to {self.out}")
        say(f"{unknown / count:.0%} of the pixels are unknown: no class has a probability of {self.min_probability:g}")
        if world is not None and seen is not None:
            labelled, landmarks = write_landmarks(self.out, world, seen, probe, self.min_probability)
            say(f"{labelled} of {landmarks} landmarks labelled: landmarks.ply, landmarks.png, landmarks.json")
        return 0


SegmentAction = (
    Annotated[FitProbe, tyro.conf.subcommand("fit")] | Annotated[PredictLabels, tyro.conf.subcommand("predict")]
)


def segment(action: Annotated[SegmentAction, tyro.conf.arg(name="")]) -> int:
    """Label every pixel by a linear classifier of its features.

    The probe keeps which model it was fitted with; another model's features are refused.
    """
    return action.run()
