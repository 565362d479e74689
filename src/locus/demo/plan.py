"""How large a demo is, and the folder it lives in."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from locus.errors import LocusError
from locus.evaluation.retrieval import Retrieval
from locus.files import load_json, save_json
from locus.training import Settings

FILE = "demo.json"
TRAINED_SEED, UNSEEN_SEED = 5000, 6000  # of no other house in the documentation, nor of a published model's


@dataclass(frozen=True)
class DemoPlan:
    """Sizes. The times on two idle cores, and how they were measured, are in docs/start.md."""

    houses: int
    """Trained on."""
    frames: int
    """Of each of them."""
    unseen: int
    """Houses that are evaluated on; one more is for validation, which chooses the checkpoint."""
    unseen_frames: int
    """Of each of them."""
    settings: Settings
    retrieval: Retrieval
    size: tuple[int, int] = (320, 256)
    """Width and height of the images."""


FULL = DemoPlan(16, 24, 2, 40, Settings(steps=150, validate_every=30), Retrieval())
QUICK = DemoPlan(
    4, 16, 1, 24, Settings(frames_per_batch=12, steps=20, warmup=3, validate_every=10), Retrieval(batches=2)
)


class DemoFolder:
    """Everything a demo makes is in here, its caches too: remove the folder, and nothing is left."""

    def __init__(self, path: Path, plan: DemoPlan) -> None:
        """Continue the demo in a folder, or begin one; a folder with another demo or other files is refused."""
        self.path, self.plan = path, plan
        told = self._read()
        now = json.loads(json.dumps(asdict(plan)))  # tuples become lists, as in the file
        changed = [name for name in now if told is not None and told.get(name) != now[name]]
        if changed:
            raise LocusError(
                f"{path} holds a demo of another size ({', '.join(changed)}); name a new folder with --out, or "
                "remove that one"
            )

    trained = property(lambda self: self.path / "trained")
    unseen = property(lambda self: self.path / "unseen")
    run = property(lambda self: self.path / "run")
    map = property(lambda self: self.path / "map")
    cache = property(lambda self: self.path / "cache")
    tokens = property(lambda self: self.path / "cache" / "tokens")
    report = property(lambda self: self.path / "report.html")

    def remember(self) -> None:
        """Note that a demo of this size lives here."""
        save_json(self.path / FILE, {"plan": asdict(self.plan)})

    def _read(self) -> dict[str, Any] | None:
        """The plan of the demo that is here, if there is one."""
        file = self.path / FILE
        if not file.is_file():
            if self.path.is_file() or (self.path.is_dir() and any(self.path.iterdir())):
                raise LocusError(f"{self.path} holds files of something else than a demo; name a new folder with --out")
            return None
        try:
            return dict(load_json(file)["plan"])
        except (LocusError, ValueError, KeyError, TypeError):
            raise LocusError(
                f"{file} is damaged; remove {self.path} to begin anew, or name a new folder with --out"
            ) from None
