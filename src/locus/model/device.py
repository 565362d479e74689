"""Which processor the networks run on."""

import os

import torch

from locus.errors import LocusError

DEVICES = {
    "cpu": lambda: True,
    "cuda": torch.cuda.is_available,
    "mps": torch.backends.mps.is_available,
}


def this_device() -> torch.device:
    """What $LOCUS_DEVICE says: cpu, cuda or mps (Apple's GPU). By default a CUDA GPU if there is one, else the CPU.

    Of several GPUs, the one of this process.
    """
    asked = os.environ.get("LOCUS_DEVICE", "")
    if asked and asked not in DEVICES:
        raise LocusError(f"LOCUS_DEVICE is {asked}, which is no device; it may be {', '.join(DEVICES)}")
    if asked and not DEVICES[asked]():
        there = ", ".join(name for name, available in DEVICES.items() if available())
        raise LocusError(f"LOCUS_DEVICE is {asked}, which PyTorch does not find on this machine; there is {there}")
    kind = asked or ("cuda" if DEVICES["cuda"]() else "cpu")
    return torch.device(kind, int(os.environ.get("LOCAL_RANK", "0"))) if kind == "cuda" else torch.device(kind)
