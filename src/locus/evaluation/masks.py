"""Systems that give masks instead of features: Mask2Former, and label maps made elsewhere; with an oracle for names."""

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int, Int32
from numpy import ndarray

from locus.backbones.pretrained import configuration, pretrained
from locus.backbones.sources import locate
from locus.evaluation.methods import Competitor
from locus.evaluation.scene_patches import EvaluationError, ScenePatches
from locus.files import content_hash
from locus.opening import read_json
from locus.scenes.reading import read_labels

MASK2FORMER = "facebook/mask2former-swin-base-coco-panoptic"
SIDE = 384  # pixels, of the images that Mask2Former was trained on
SURE = 0.5  # a segment, and a pixel of it, must be likelier than this
# Names of COCO's panoptic classes that mean one of the generated houses' or Matterport3D's.
SYNONYMS = {"couch": "sofa", "dining table": "table", "potted plant": "plant", "tv": "television"}


@dataclass(frozen=True, eq=False)
class Segments:
    """What a system says of an image."""

    ids: Int32[ndarray, "height width"]
    """0: nothing."""
    names: dict[int, str]
    """What each id is: a class of stuff (`wall`), or an object (`sofa 12`), as the scene names them."""


class MaskMethod(Competitor):
    """Label maps. With the oracle, each segment is given the name of the object that it covers most."""

    def __init__(self, name: str, oracle: bool) -> None:
        self.label = f"{name} + oracle" if oracle else name
        self.oracle = oracle

    @abstractmethod
    def segments(self, patches: ScenePatches, row: int) -> Segments:
        """Of one frame."""


def oracle_names(segments: Segments, truth: Int[ndarray, "height width"], names: dict[int, str]) -> Segments:
    """The segments renamed by the truth, as the paper does: each is the object that most of its pixels show."""
    renamed = {}
    for number in segments.names:
        covered = Counter(truth[(segments.ids == number) & (truth > 0)].tolist())
        if covered:
            renamed[number] = names[covered.most_common(1)[0][0]]
    return Segments(segments.ids, renamed)


class MaskPredictions(MaskMethod):
    """FOLDER/SCENE/FRAME.png, 8 or 16 bits, an id a pixel, 0 for none; FOLDER/SCENE.json: `{"id": "sofa 12", ...}`."""

    def __init__(self, folder: Path, oracle: bool = False) -> None:
        super().__init__(folder.name, oracle)
        self.folder = folder
        if not folder.is_dir():
            raise EvaluationError(f"{folder}, the folder of predicted masks, does not exist")

    @classmethod
    def named(cls, path: Path) -> "MaskPredictions":
        """FOLDER, or FOLDER+oracle."""
        return cls(path.with_name(path.name.removesuffix("+oracle")), path.name.endswith("+oracle"))

    @property
    def fingerprint(self) -> str:
        files = sorted(file for file in self.folder.rglob("*") if file.is_file())
        return content_hash(self.oracle, *(file.relative_to(self.folder).as_posix() for file in files), *files)

    def segments(self, patches: ScenePatches, row: int) -> Segments:
        frame = patches.frame(row)
        file = self.folder / patches.scene.name / f"{frame.name}.png"
        if not file.is_file():
            raise EvaluationError(f"{file} is missing: masks of every frame are needed, empty ones too")
        ids = read_labels(file)
        if ids.shape != (frame.camera.height, frame.camera.width):
            size = f"{frame.camera.width}×{frame.camera.height}"
            raise EvaluationError(f"{file} must be of {size} pixels, as the frame is")
        names = self._names(patches.scene.name)
        unknown = np.setdiff1d(ids, [0, *names])
        if unknown.size:
            raise EvaluationError(f"{file} holds the id {unknown[0]}, which {patches.scene.name}.json does not name")
        return Segments(ids, names)

    def _names(self, scene: str) -> dict[int, str]:
        file = self.folder / f"{scene}.json"
        if not file.exists():
            raise EvaluationError(f"{file}, which names the ids of the masks, does not exist")
        try:
            told: dict[str, Any] = read_json(file)
            return {int(number): str(name) for number, name in told.items()}
        except (ValueError, AttributeError) as error:
            raise EvaluationError(f"{file} must be an object of ids and names: {error}") from None


class Mask2Former(MaskMethod):
    """Mask2Former (transformers): panoptic masks of single images, so its objects have no name that lasts."""

    def __init__(self, oracle: bool = False, weights: str | Path = MASK2FORMER) -> None:
        super().__init__("Mask2Former", oracle)
        located = locate(weights)
        config = configuration(located.folder)
        self.network = pretrained("Mask2FormerForUniversalSegmentation", located.folder, config)
        self.source = located.name

    @property
    def fingerprint(self) -> str:
        return f"mask2former {self.source} {self.oracle} 1"

    @torch.inference_mode()
    def segments(self, patches: ScenePatches, row: int) -> Segments:
        image = patches.frame(row).image
        small = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        pixels = torch.from_numpy(small).permute(2, 0, 1).float()[None] / 255
        mean, spread = (torch.tensor(values).view(3, 1, 1) for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
        output = self.network(pixel_values=(pixels - mean) / spread)
        # The last class is "no object".
        likely, label = output.class_queries_logits[0].softmax(dim=-1).max(dim=-1)
        kept = (label < output.class_queries_logits.shape[-1] - 1) & (likely > SURE)
        if not kept.any():
            return Segments(np.zeros(image.shape[:2], np.int32), {})
        masks = output.masks_queries_logits[:, kept]
        masks = F.interpolate(masks, size=image.shape[:2], mode="bilinear", align_corners=False)[0].sigmoid()
        best = (masks * likely[kept][:, None, None]).argmax(dim=0)
        sure = masks.gather(0, best[None])[0] > SURE
        ids = torch.where(sure, best + 1, 0).int().numpy()
        kinds = {each.name: each.kind for each in patches.scene.classes}
        names = {}
        for number, each in enumerate(label[kept].tolist(), 1):
            word = str(self.network.config.id2label[each]).split("-")[0]  # COCO's "wall-other-merged"
            word = SYNONYMS.get(word, word)
            # Objects are numbered within the image: nothing says which they are in another.
            names[number] = f"{word} {number}" if kinds.get(word) == "thing" else word
        return Segments(ids, names)
