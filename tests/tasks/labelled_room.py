"""The room of tests/scenes with its labels, as a scene on disk; and features that know every object, as a ceiling."""

import json
from pathlib import Path

import numpy as np
import torch

from locus.features.dense import SceneFeatures
from locus.scenes import Scene
from tests.scenes import layouts, room

GRID = (12, 16)


def write(root: Path, count: int = 6, renumber: int = 0, labels: bool = True) -> Path:
    """The room in the native format; `renumber` is added to every class's id, as another data set would have it."""
    shots = room.shots(count)
    root.mkdir()
    layouts.nerfstudio(root, shots)
    if not labels:
        return root
    content = json.loads((root / "transforms.json").read_text())
    content["classes"] = [{"id": k + renumber, "name": name, "kind": kind} for k, (name, kind) in room.CLASSES.items()]
    for frame, shot in zip(content["frames"], shots, strict=True):
        semantic = np.where(shot.semantic > 0, shot.semantic + renumber, 0)
        for kind, values in (("semantic", semantic), ("instance", shot.instance)):
            frame[f"{kind}_file_path"] = f"{kind}/{shot.name}.png"
            layouts.save(root / kind / f"{shot.name}.png", values.astype(np.uint16))
    (root / "transforms.json").write_text(json.dumps(content))
    return root


def perfect(scene: Scene, kind: str = "instance") -> SceneFeatures:
    """Each patch's feature is the share of it that each object (or class) has, of unit length."""
    maps = np.stack([getattr(frame, kind) for frame in scene])
    rows, columns = GRID
    cells = maps.reshape(len(maps), rows, room.HEIGHT // rows, columns, room.WIDTH // columns)
    shares = np.stack([(cells == k).mean(axis=(2, 4)) for k in range(8)], axis=-1)
    features = torch.nn.functional.normalize(torch.from_numpy(shares).float(), dim=-1)
    points = np.full((len(maps), rows, columns, 3), np.nan, np.float32)
    return SceneFeatures(scene, list(range(len(maps))), points, features[None])
