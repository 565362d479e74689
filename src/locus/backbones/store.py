"""LoCUS's own store of weights: one folder per network in transformers' layout, with a note of where it came from."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from locus.backbones.variants import VARIANTS, configuration
from locus.errors import LocusError, WeightsError
from locus.files import atomic_folder, cache_folder, clear_leftovers
from locus.opening import UNLIMITED, opened, read_json

WEIGHTS = "model.safetensors"
SOURCE = "source.json"


def store_folder() -> Path:
    """Where the store is: $LOCUS_CACHE/weights, by default ~/.cache/locus/weights."""
    return cache_folder() / "weights"


def store(name: str, tensors: Mapping[str, Tensor], source: Mapping[str, Any]) -> Path:
    """Keep all tensors of a network; replaces what was there. Those of `VARIANTS` are named as transformers does.

    `source`, where they came from and their licence, is kept beside them in source.json.
    """
    from safetensors.torch import save_file

    config = configuration(name).to_json_string() if name in VARIANTS else json.dumps({"model_type": name})
    with atomic_folder(store_folder() / name, replace=True) as new:
        (new / "config.json").write_text(config)
        save_file(dict(tensors), new / WEIGHTS, metadata={"format": "pt"})
        stored = {"bytes": (new / WEIGHTS).stat().st_size, "sha256": sha256(new / WEIGHTS)}
        note = {"name": name, **source, WEIGHTS: stored}
        (new / SOURCE).write_text(json.dumps(note, indent=2, ensure_ascii=False) + "\n")
    return store_folder() / name


def stored(name: str) -> Path | None:
    """The store's folder of a network, None if it has none; an error if the folder is damaged."""
    clear_leftovers(store_folder())
    folder = store_folder() / name
    if not folder.is_dir():
        return None
    weights = folder / WEIGHTS
    expected = source(folder).get(WEIGHTS, {}).get("bytes")
    if not (folder / "config.json").is_file() or not weights.is_file() or weights.stat().st_size != expected:
        raise _damaged(folder)
    return folder


def verify(name: str) -> bool:
    """Whether a network's stored weights are, byte for byte, those that were stored."""
    try:
        folder = stored(name)
    except WeightsError:
        return False
    return folder is not None and sha256(folder / WEIGHTS) == source(folder)[WEIGHTS].get("sha256")


def discard(name: str) -> None:
    """Remove a network from the store."""
    shutil.rmtree(store_folder() / name, ignore_errors=True)


def source(folder: Path) -> dict[str, Any]:
    """What source.json of a stored network says."""
    try:
        note = read_json(folder / SOURCE)
        return note if isinstance(note.get(WEIGHTS), dict) else {}
    except (LocusError, AttributeError):
        raise _damaged(folder) from None


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with opened(path, UNLIMITED) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _damaged(folder: Path) -> WeightsError:
    again = f"get it again with `locus weights fetch {folder.name}`, or import it again"
    return WeightsError(f"the stored weights in {folder} are cut short or incomplete; {again}")
