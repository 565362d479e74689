"""LoCUS through torch.hub: `torch.hub.load(".", "locus", source="local", path="run")`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locus.model import LoCUS

dependencies = ["cv2", "huggingface_hub", "jaxtyping", "numpy", "safetensors", "torch", "transformers"]


def locus(path: str, **options: Any) -> "LoCUS":
    """A trained model: a folder (a training run's too) or a Hugging Face id. Options as of `from_pretrained`."""
    sys.path.append(str(Path(__file__).parent / "src"))  # torch.hub installs nothing
    from locus.model import LoCUS

    return LoCUS.from_pretrained(path, **options)
