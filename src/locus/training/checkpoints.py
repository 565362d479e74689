"""A run's folder: what it was told, what it measured, what it learned. Every file is whole at any moment."""

import io
import json
import os
import pickle
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from locus.checksums import PLACE, sealed, verify
from locus.errors import DamagedError, LocusError
from locus.files import atomic, clear_leftovers, load_json, lock_file, save_json
from locus.opening import opened, read
from locus.training.settings import Settings, TrainingError

SETTINGS, METRICS, CURVES = "training.json", "metrics.jsonl", "curves.png"
LAST, BEST, START = (Path("checkpoints", name) for name in ("last.pt", "best.pt", "start.pt"))
# A run may be told to go on for longer or to look more often; anything else makes it another run.
MAY_CHANGE = ("steps", "validate_every", "checkpoint_every")


@dataclass
class State:
    """All that a run needs to go on as if it had not stopped; batches follow from seed and step."""

    step: int
    head: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    best: float
    skipped: int
    losses: list[float]
    """Since the last validation."""


def save_state(state: State, path: Path) -> None:
    whole = io.BytesIO()  # written by torch itself, a full disk would be no OSError
    torch.save(vars(state), whole)
    with atomic(path) as file:
        file.write_bytes(sealed(whole.getvalue()))


def load_state(path: Path) -> State:
    try:
        state = State(**torch.load(io.BytesIO(read(path)), map_location="cpu", weights_only=True))
        if not all(weight.isfinite().all() for weight in state.head.values()):
            raise ValueError("it has weights that are not numbers")
        return state
    except pickle.UnpicklingError:
        reason = "it is not one of LoCUS"  # torch would advise to run what is in it
    except Exception as error:  # of a damaged file, torch's reader may fail in any way
        if isinstance(error, MemoryError | LocusError) and not isinstance(error, DamagedError):
            raise
        reason = (str(error) or "it is cut short").splitlines()[0]
    raise TrainingError(f"the checkpoint {path} cannot be read ({reason}); delete it to begin again")


def provenance(settings: Settings, head: nn.Module, sources: Mapping[str, Any]) -> dict[str, Any]:
    """What a run was made from, so that it can be made again."""
    packages = ("locus-features", "torch", "transformers", "numpy", "safetensors")
    return {
        "settings": asdict(settings),
        "learned parameters": sum(weight.numel() for weight in head.parameters()),
        "versions": {package: metadata.version(package) for package in packages},
        **sources,
    }


def begin(folder: Path, described: dict[str, Any]) -> None:
    """Make the run's folder, or take up the run in it; another run's folder is refused."""
    for part in (folder, folder / LAST.parent):
        clear_leftovers(part)
    file = folder / SETTINGS
    if file.is_file():
        check_same(folder, _told(file), described)
    elif any(other != lock_file(file) for other in folder.iterdir()):
        raise TrainingError(f"{folder} holds other things than a run; name a new folder with --out")
    save_json(file, described)
    state = last_state(folder)
    keep_metrics(folder / METRICS, -1 if state is None else state.step)


def _told(file: Path) -> dict[str, Any]:
    """What a run was told."""
    with suppress(LocusError):
        told = load_json(file)
        if isinstance(told.get("settings"), dict):
            return told
    raise TrainingError(f"{file} is damaged; remove {file.parent} to begin again, or name a new folder")


def last_state(folder: Path) -> State | None:
    """Where the run in a folder stopped."""
    return load_state(folder / LAST) if (folder / LAST).is_file() else None


def check_same(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    now = json.loads(json.dumps(now))  # tuples become lists, as in the file
    told = asdict(Settings()) | before["settings"]  # a setting that did not exist then had its default's effect
    changed = [
        f"{key} was {told[key]} and is {value}"
        for key, value in now["settings"].items()
        if key not in MAY_CHANGE and told[key] != value
    ]
    changed += [f"{key} changed" for key in now if key not in ("settings", "versions") and before.get(key) != now[key]]
    if changed:
        raise TrainingError(f"{folder} holds a run of other settings ({'; '.join(changed)}); name a new folder")


def append_metrics(path: Path, row: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(_line(row))
        file.flush()
        os.fsync(file.fileno())


def _line(row: dict[str, Any]) -> bytes:
    """Each line has a checksum of its own: the file grows, and is read by others."""
    return sealed(json.dumps({"checksum": PLACE, **row}).encode()) + b"\n"


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Rows so far. A last line cut short by a crash is left out."""
    if not path.is_file():
        return []
    with opened(path) as file:
        *lines, _ = file.read().split(b"\n")
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            verify(line, path)
            row = json.loads(line)
            row.pop("checksum", None)
            int(row["step"])
            rows.append(row)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, DamagedError):
            raise TrainingError(f"line {number} of {path} is damaged; delete that line, and run again") from None
    return rows


def keep_metrics(path: Path, step: int) -> None:
    """Drop what was measured after the checkpoint that the run goes on from: it will be measured again."""
    rows = [row for row in read_metrics(path) if row["step"] <= step]
    with atomic(path) as file:
        file.write_bytes(b"".join(map(_line, rows)))
