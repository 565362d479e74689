"""The errors a user can meet. Each message says what is wrong, where, and what to do about it."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from urllib.parse import urlsplit
from urllib.request import url2pathname

LONGEST = 2000  # characters of a message


class LocusError(Exception):
    """Something the user can put right; the command line prints it as one sentence and exits with code 2.

    The message is one line of bounded length, whatever a library or a file has put into it.
    """

    def __init__(self, message: object) -> None:
        line = "".join(each if each.isprintable() else " " for each in str(message))
        super().__init__(line if len(line) <= LONGEST else f"{line[:LONGEST]}…")


class SceneError(LocusError):
    """A scene that cannot be opened."""


class FrameError(LocusError):
    """One frame that cannot be used; the rest of its scene may be sound."""


class WeightsError(LocusError):
    """Weights of a network that cannot be had, or a weight file that cannot be read."""


class DamagedError(LocusError):
    """A file whose content is not what was written."""


def to_install(extra: str) -> str:
    """The command that adds an extra to this very installation, whether it was made from a clone, a wheel or an index.

    Its own Python is named, since the `pip` on the path may be another one's; a clone is named by its folder, since it
    may have got the extra after it was installed.
    """
    try:
        made = json.loads(distribution("locus-features").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        made = {}
    clone = made.get("dir_info")
    what = "locus-features" if clone is None else url2pathname(urlsplit(made["url"]).path)
    editable = ["-e"] if clone and clone.get("editable") else []
    return shlex.join([sys.executable, "-m", "pip", "install", *editable, f"{what}[{extra}]"])
