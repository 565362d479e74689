"""Names for the objects of a graph: by a linear probe, or by words that a CLIP of the user's compares with pictures."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import SceneFeatures
from locus.geometry import invert, transform
from locus.tasks.place_graph import GraphPlace, PlaceGraph, scale_of
from locus.tasks.probe import Probe

PROMPT = "a photo of a {}"
MEAN, DEVIATION = (0.4815, 0.4578, 0.4082), (0.2686, 0.2613, 0.2758)  # of CLIP's pictures, RGB
AROUND = 1.15  # a picture of an object is so much larger than its box
VIEWS = 3  # of an object that are looked at, those where it is largest


def named_by_probe(graph: PlaceGraph, probe: Probe) -> PlaceGraph:
    """Objects and spots of the probe's scale with its likeliest class, and how likely it is."""
    if probe.fingerprint != graph.model:
        raise LocusError("the probe was fitted to features of another model than the graph's; fit one for this model")
    kinds = [kind for kind in ("object", "spot") if scale_of(graph.radii, kind) == probe.scale]
    if not kinds:
        raise LocusError(f"the probe is of scale {probe.scale}, which no place of a graph is of; fit it with --scale 1")

    def named(place: GraphPlace) -> GraphPlace:
        if place.kind not in kinds:
            return place
        likely = probe.logits(torch.tensor(place.embedding)).softmax(dim=-1)
        best = int(likely.argmax())
        return replace(place, label=probe.classes[best].name, probability=round(float(likely[best]), 4))

    return replace(graph, places=tuple(named(place) for place in graph.places))


class WordNames:
    """A CLIP of transformers, by name or folder, and words that things may be called by."""

    def __init__(self, clip: str, words: Sequence[str]) -> None:
        from transformers import AutoTokenizer, CLIPModel

        if not words:
            raise LocusError("CLIP chooses among words: name some with --words chair table ...")
        try:
            self.model = CLIPModel.from_pretrained(clip, use_safetensors=True).eval()
            tokenizer: Any = AutoTokenizer.from_pretrained(clip)
            tokens = tokenizer([PROMPT.format(word) for word in words], padding=True)
        except (OSError, ValueError) as error:
            raise LocusError(f"{clip} is no CLIP that transformers can load: {error}") from None
        self.words = tuple(words)
        with torch.inference_mode():
            given: dict[str, Any] = {name: torch.tensor(values) for name, values in tokens.items()}
            self.texts = F.normalize(_pooled(self.model.get_text_features(**given)), dim=-1)

    def named(self, graph: PlaceGraph, seen: SceneFeatures) -> PlaceGraph:
        """The objects of the scene's environment with the likeliest word, by the mean over their largest views."""
        places = [self._named(place, seen) if place.kind == "object" else place for place in graph.places]
        return replace(graph, places=tuple(places))

    @torch.inference_mode()
    def _named(self, place: GraphPlace, seen: SceneFeatures) -> GraphPlace:
        pictures = crops(place, seen)
        if not pictures:
            return place
        side = self.model.config.vision_config.image_size
        resized = [cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA) / 255 for picture in pictures]
        standard = torch.from_numpy((np.stack(resized) - MEAN) / DEVIATION).float().permute(0, 3, 1, 2)
        images = F.normalize(_pooled(self.model.get_image_features(pixel_values=standard)), dim=-1)
        likely = (self.model.logit_scale.exp() * images @ self.texts.T).softmax(dim=-1).mean(dim=0)
        best = int(likely.argmax())
        return replace(place, label=self.words[best], probability=round(float(likely[best]), 4))


def _pooled(output: Any) -> Float[Tensor, "n c"]:
    """Newer versions of transformers wrap the features."""
    return output if isinstance(output, Tensor) else output.pooler_output


def crops(place: GraphPlace, seen: SceneFeatures) -> list[UInt8[ndarray, "_ _ 3"]]:
    """A place's box cut out of the frames that show it largest and whole before the camera."""
    corners = np.array(place.position) + (np.indices((2, 2, 2)).reshape(3, -1).T - 0.5) * np.array(place.extent)
    rows = {seen.scene.sources[index].name: row for row, index in enumerate(seen.indices)}
    found = []
    for row in (rows[name] for name in place.views if name in rows):
        frame = seen.frame(row)
        local = transform(invert(frame.world_from_camera), corners)
        if local[:, 2].min() <= 0:
            continue
        pixels, _ = frame.camera.project(local)
        middle, half = pixels.mean(axis=0), AROUND * np.ptp(pixels, axis=0) / 2
        size = np.array([frame.camera.width, frame.camera.height])
        low, high = (middle - half).clip(0, size).astype(int), (middle + half).clip(0, size).astype(int)
        if (high > low).all():
            found.append((int(np.prod(high - low)), row, low, high))
    best = sorted(found, key=lambda each: (-each[0], each[1]))[:VIEWS]
    return [seen.frame(row).image[low[1] : high[1], low[0] : high[0]] for _, row, low, high in best]
