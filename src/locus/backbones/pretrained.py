"""Networks of the transformers library from a local folder in its layout: config.json and weights."""

from pathlib import Path
from typing import Any

import torch

from locus.errors import LocusError, WeightsError
from locus.opening import LARGEST_TEXT, UNLIMITED, admitted, read_json

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))

# Parts that exist in some checkpoints and take no part in patch tokens.
UNUSED = ("pooler", "mask_token")


def configuration(folder: Path) -> Any:
    """The network's configuration; of a full CLIP, its image half's."""
    from transformers import AutoConfig

    for file in folder.glob("*.*"):
        if not file.is_dir():
            admitted(file, LARGEST_TEXT if file.suffix == ".json" else UNLIMITED)
    try:
        # Left open, transformers would ask on the terminal whether to run code that lies in the folder.
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # a file that is not what it says can raise anything: JSON, its own checks of fields
        raise WeightsError(f"{folder} is not a network that transformers can open: {_briefly(error)}") from None
    return config.vision_config if config.model_type == "clip" else config


def normalisation(folder: Path, model_type: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of the pixels the network was trained on."""
    default = CLIP if model_type.startswith("clip") else IMAGENET
    stated = folder / "preprocessor_config.json"
    if not stated.is_file():
        return default
    try:
        said = read_json(stated)
        mean, std = (tuple(map(float, said.get(key, default[k]))) for k, key in enumerate(("image_mean", "image_std")))
    except (LocusError, ValueError, TypeError, AttributeError) as error:
        raise WeightsError(f"{stated} cannot be read: {error}") from None
    if len(mean) != 3 or len(std) != 3 or not min(std) > 0:
        raise WeightsError(f"{stated} must have three numbers of image_mean and three positive ones of image_std")
    return mean, std


def pretrained(model: str, folder: Path, config: Any) -> Any:
    """The network, frozen, with every weight it needs from the folder."""
    import transformers
    from transformers.utils import logging

    options: dict[str, Any] = {"add_pooling_layer": False} if model == "ViTModel" else {}
    options["dtype"] = torch.float32  # a file in half precision is no reason to compute in it
    shown, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # it would report the blocks we leave out
    logging.disable_progress_bar()
    try:
        network, told = getattr(transformers, model).from_pretrained(
            folder, config=config, local_files_only=True, output_loading_info=True, **options
        )
    except Exception as error:  # likewise: safetensors, zip, a pickle that is refused, an index without its table
        raise WeightsError(f"{folder} does not hold the weights of a {model}: {_briefly(error)}") from None
    finally:
        logging.set_verbosity(shown)
        if bars:
            logging.enable_progress_bar()
    missing = sorted(key for key in told["missing_keys"] if not any(part in key for part in UNUSED))
    if missing:
        shown_keys = ", ".join(missing[:5])
        raise WeightsError(f"{folder} lacks {len(missing)} weights of a {model}: {shown_keys}")
    return network.eval().requires_grad_(False)


def _briefly(error: Exception) -> str:
    """The first sentence of a message; transformers' go on for many lines."""
    return str(error).strip().split("\n")[0].split(". ")[0][:300]
