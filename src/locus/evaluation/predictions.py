"""Answers of systems run elsewhere, from files (docs/evaluation.md says how they are written)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import LocusError
from locus.evaluation.methods import Competitor
from locus.evaluation.scene_patches import EvaluationError
from locus.files import content_hash
from locus.geometry import rigid
from locus.opening import parse_json, read_text


class PosePredictions(Competitor):
    """Motions between frames: one JSON object a line, `{"scene", "a", "b", "b_from_a"}`; null: it found none."""

    def __init__(self, path: Path) -> None:
        self.label = path.stem
        self.path = path
        self._poses: dict[tuple[str, str, str], Float[ndarray, "4 4"] | None] = {}
        if not path.is_file():
            raise EvaluationError(f"{path}, the file of predictions, does not exist")
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if line.strip():
                try:
                    self._add(parse_json(line, "the line"))
                except (LocusError, KeyError, TypeError, ValueError) as error:
                    what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
                    raise EvaluationError(f"{path}, line {number}: {what}") from None

    @property
    def fingerprint(self) -> str:
        return content_hash(self.path)

    def _add(self, told: dict[str, Any]) -> None:
        key = (str(told["scene"]), str(told["a"]), str(told["b"]))
        if key in self._poses:
            raise EvaluationError(f"the pair {' '.join(key)} is there twice")
        stored = told["b_from_a"]
        if stored is not None:
            pose = np.array(stored, np.float64)
            if pose.shape != (4, 4):
                raise EvaluationError(f"b_from_a has shape {pose.shape}, not 4×4")
            stored = rigid(pose)
        self._poses[key] = stored

    def poses(self, scene: str, pairs: Sequence[tuple[str, str]]) -> list[Float[ndarray, "4 4"] | None]:
        """Of pairs of frames; one that is missing is an error, because leaving it out would flatter."""
        missing = [pair for pair in pairs if (scene, *pair) not in self._poses]
        if missing:
            raise EvaluationError(
                f"{self.path} misses {len(missing)} of {len(pairs)} pairs of {scene}, the first "
                f"{' '.join(missing[0])}; write null for pairs without a pose"
            )
        return [self._poses[(scene, *pair)] for pair in pairs]
