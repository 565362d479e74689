"""A user's own furniture (OBJ, GLB) and photographs, to mix into generated houses."""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path

import cv2
import numpy as np

from locus.errors import LocusError
from locus.houses.items import Item, Shelf
from locus.opening import read_text
from locus.render.materials import Material
from locus.render.mesh_file import load_parts
from locus.scenes.reading import read_image

TABLE = "kinds.txt"
"""A file in the folder may name kinds: one line per model, `file name<space>kind`."""

# Words at the end of file names, for kinds that are not called so themselves.
WORDS = {
    "couch": "sofa", "settee": "sofa", "fauteuil": "armchair", "deskchair": "office chair", "bedside": "nightstand",
    "bookcase": "bookshelf", "dresser": "chest of drawers", "drawers": "chest of drawers", "closet": "wardrobe",
    "tv": "television", "monitor": "computer screen", "lamp": "floor lamp", "table": "dining table",
    "refrigerator": "fridge", "washer": "washing machine", "basin": "washbasin", "wc": "toilet", "bath": "bathtub",
    "flowers": "vase", "trashcan": "bin", "mug": "dishes", "cup": "dishes", "plate": "dishes",
}  # fmt: skip
# The kinds that are taken, and how long the longest side of one may be, in metres; others are scaled to fit.
SIZES = {
    "sofa": (1.3, 2.3), "armchair": (0.65, 1.05), "chair": (0.75, 1.05), "office chair": (0.85, 1.2),
    "stool": (0.42, 0.75), "bench": (0.9, 1.4), "pouf": (0.4, 0.7), "bed": (1.9, 2.2), "dining table": (0.9, 1.9),
    "coffee table": (0.6, 1.2), "side table": (0.4, 0.6), "desk": (1.1, 1.6), "nightstand": (0.4, 0.6),
    "console table": (0.8, 1.2), "wardrobe": (1.8, 2.2), "bookshelf": (1.0, 2.1), "chest of drawers": (0.7, 1.2),
    "sideboard": (1.1, 1.8), "tv stand": (1.0, 1.8), "fridge": (1.5, 1.95), "microwave": (0.4, 0.5),
    "kettle": (0.2, 0.28), "toaster": (0.25, 0.32), "pot": (0.2, 0.3), "dishes": (0.08, 0.25), "bottle": (0.2, 0.34),
    "fruit bowl": (0.2, 0.35), "toilet": (0.65, 0.85), "washbasin": (0.55, 0.95), "bathtub": (1.5, 1.8),
    "washing machine": (0.8, 0.9), "television": (0.7, 1.3), "computer screen": (0.45, 0.7), "laptop": (0.3, 0.38),
    "speaker": (0.3, 0.95), "floor lamp": (1.3, 1.8), "table lamp": (0.3, 0.55), "plant": (0.3, 1.7),
    "vase": (0.18, 0.5), "box": (0.2, 0.5), "basket": (0.3, 0.5), "bin": (0.3, 0.6), "candle": (0.06, 0.25),
    "toy": (0.1, 0.35), "piano": (1.3, 1.6),
}  # fmt: skip

FLAT_TOPPED = {kind for kind in SIZES if kind.endswith("table")} | {"desk", "nightstand", "sideboard", "tv stand"}


def load_models(folder: str | PathLike[str] | None) -> dict[str, list[Callable[[], Item]]]:
    """Makers of models by kind. A file's kind is taken from `kinds.txt` in the folder or from the file's name."""
    if folder is None:
        return {}
    root = Path(folder)
    files = _files(root, (".obj", ".glb", ".gltf"), "models (OBJ, GLB)")
    table = _table(root)
    models: dict[str, list[Callable[[], Item]]] = {}
    for file in files:
        kind = table.get(file.name) or kind_of(file.stem)
        if kind:
            models.setdefault(kind, []).append(partial(_load, file, kind))
    if not models:
        raise LocusError(f"no file name in {root} tells a known kind of furniture; name them in {root / TABLE}")
    return models


def kind_of(name: str) -> str | None:
    """The kind that the end of a file name tells: `office_chair_03` is an office chair, `toilet_brush` nothing."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    joined, last = "".join(words), words[-1] if words else ""
    # Short names need a word of their own: a cabin is no bin.
    known = {kind.replace(" ", ""): kind for kind in SIZES} | WORDS
    fitting = [word for word in known if word == last or (len(word) > 4 and joined.endswith(word))]
    return known[max(fitting, key=len)] if fitting else None


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
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip():
            continue
        name, _, kind = line.strip().partition(" ")
        if kind.strip() not in SIZES:
            raise LocusError(f"{file}, line {number}: {kind.strip()!r} is not a kind; known are {', '.join(SIZES)}")
        table[name] = kind.strip()
    return table


@lru_cache(maxsize=256)
def _load(file: Path, kind: str) -> Item:
    """A model stood upright on the floor, its longest side brought to a length that its kind can have."""
    loaded = Item(kind, load_parts(file, up="y"), []).centred()
    longest = float(loaded.size().max())
    scale = float(np.clip(longest, *SIZES[kind])) / longest
    # In y-up files the front looks along z, which the turn to z-up has sent backwards.
    parts = [part.moved(np.diag([-scale, -scale, scale, 1.0])) for part in loaded.parts]
    width, depth, height = (float(v) for v in scale * loaded.size())
    model = Item(kind, parts, [])
    if kind in FLAT_TOPPED and _level_area(model, height) > 0.5 * width * depth:
        model.shelves.append(Shelf(-0.4 * width, -0.4 * depth, 0.4 * width, 0.4 * depth, height))
    return model


def _level_area(model: Item, height: float) -> float:
    """Square metres of surface that face up at a height: a desk with a hutch has its top elsewhere."""
    corners = np.concatenate([part.vertices[part.faces] for part in model.parts]).astype(float)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    level = (np.abs(corners[..., 2] - height) < 0.01).all(axis=1)
    return float(np.abs(cross[level, 2]).sum() / 2)
