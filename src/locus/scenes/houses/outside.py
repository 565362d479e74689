"""A user's own furniture (OBJ, GLB) and photographs, to mix into generated houses."""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path

import cv2
import numpy as np

from locus.errors import LocusError
from locus.scenes.files import read_image
from locus.scenes.houses.classes import THINGS
from locus.scenes.houses.model import Model, Shelf
from locus.scenes.render.materials import Material
from locus.scenes.render.mesh_file import load_parts

TABLE = "kinds.txt"
"""A file in the folder may name kinds: one line per model, `file name<space>kind`."""

# Words in file names, for kinds that are not called so themselves.
WORDS = {
    "couch": "sofa",
    "settee": "sofa",
    "fauteuil": "armchair",
    "officechair": "office chair",
    "deskchair": "office chair",
    "barstool": "stool",
    "bookcase": "bookshelf",
    "dresser": "chest of drawers",
    "drawers": "chest of drawers",
    "closet": "wardrobe",
    "cupboard": "wardrobe",
    "tv": "television",
    "monitor": "computer screen",
    "refrigerator": "fridge",
    "basin": "washbasin",
    "bath": "bathtub",
    "wc": "toilet",
    "chandelier": "ceiling lamp",
    "pendant": "ceiling lamp",
    "lamp": "floor lamp",
    "table": "dining table",
    "flowers": "plant",
    "frame": "picture",
    "carpet": "rug",
    "bedside": "nightstand",
    "nighttable": "nightstand",
    "trash": "bin",
}
# Sizes that a model of a kind may have (width, depth, height in metres); others are scaled to the nearest.
SIZES = {
    "sofa": (1.3, 2.3), "armchair": (0.6, 1.0), "chair": (0.38, 0.6), "office chair": (0.5, 0.75), "bed": (0.9, 2.1),
    "dining table": (0.8, 2.0), "coffee table": (0.6, 1.3), "side table": (0.35, 0.6), "desk": (1.0, 1.7),
    "wardrobe": (0.8, 2.2), "bookshelf": (0.6, 2.1), "plant": (0.25, 1.7), "floor lamp": (0.25, 1.8),
}  # fmt: skip


def load_models(folder: str | PathLike[str] | None) -> dict[str, list[Callable[[], Model]]]:
    """Makers of models by kind. A file's kind is taken from `kinds.txt` in the folder or from the file's name."""
    if folder is None:
        return {}
    root = Path(folder)
    files = _files(root, (".obj", ".glb", ".gltf"), "models (OBJ, GLB)")
    table = _table(root)
    models: dict[str, list[Callable[[], Model]]] = {}
    for file in files:
        kind = table.get(file.name) or kind_of(file.stem)
        if kind:
            models.setdefault(kind, []).append(partial(_load, file, kind))
    if not models:
        raise LocusError(f"no file name in {root} tells a known kind of furniture; name them in {root / TABLE}")
    return models


def kind_of(name: str) -> str | None:
    """The kind that a file name tells: `office_chair_03` is an office chair."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = f" {' '.join(re.findall(r'[a-z]+', words.lower()))} "
    plain = words.replace(" ", "")
    for kind in sorted(THINGS, key=len, reverse=True):
        if f" {kind} " in words or (kind.replace(" ", "") in plain and len(kind) > 4):
            return kind
    return next(
        (kind for word, kind in WORDS.items() if f" {word} " in words or (len(word) > 4 and word in plain)), None
    )


def load_textures(folder: str | PathLike[str] | None) -> tuple[Material, ...]:
    """Photographs as square materials."""
    if folder is None:
        return ()
    files = _files(Path(folder), (".jpg", ".jpeg", ".png"), "photographs (JPEG, PNG)")
    return tuple(Material(_square(read_image(file)), tile=1.0, roughness=0.8) for file in files)


def _square(image: np.ndarray) -> np.ndarray:
    """The middle square of a picture at 256 × 256."""
    side = min(image.shape[:2])
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    return cv2.resize(image[top : top + side, left : left + side], (256, 256), interpolation=cv2.INTER_AREA)


def _files(root: Path, endings: tuple[str, ...], what: str) -> list[Path]:
    if not root.is_dir():
        raise LocusError(f"{root} is not a folder; it should hold {what}")
    files = sorted(file for file in root.rglob("*") if file.suffix.lower() in endings)
    if not files:
        raise LocusError(f"{root} holds no {what}")
    return files


def _table(root: Path) -> dict[str, str]:
    file = root / TABLE
    if not file.exists():
        return {}
    table = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        name, _, kind = line.strip().partition(" ")
        if kind.strip() not in THINGS:
            raise LocusError(f"{file}, line {number}: {kind.strip()!r} is not a kind; known are {', '.join(THINGS)}")
        table[name] = kind.strip()
    return table


@lru_cache(maxsize=256)
def _load(file: Path, kind: str) -> Model:
    """A model stood upright on the floor, its largest side brought to a size that its kind can have."""
    model = Model(kind, load_parts(file, up="y"), []).centred()
    width, depth, height = model.size()
    largest = max(width, depth, height)
    low, high = SIZES.get(kind, (0.05, 2.3))
    scale = float(np.clip(largest, low, high) / largest)
    matrix = np.diag([scale, scale, scale, 1.0])
    parts = [part.moved(matrix) for part in model.parts]
    x, y, z = scale * width / 2 * 0.8, scale * depth / 2 * 0.8, scale * height
    shelves = (
        [Shelf(-x, -y, x, y, z, 1.0)] if kind.endswith(("table", "desk", "nightstand", "sideboard", "stand")) else []
    )
    return Model(kind, parts, shelves)
