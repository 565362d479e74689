"""LoCUS: a frozen backbone and a learned head, image in, unit-length patch features out, one map per scale."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import torch
import torch.nn.functional as F
from huggingface_hub import ModelCard, PyTorchModelHubMixin, constants, get_session, hf_hub_download
from jaxtyping import Float, UInt8
from safetensors import SafetensorError
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize
from torch import Tensor, nn

from locus import backbones
from locus.backbones import Backbone
from locus.backbones.conversion import mismatches
from locus.checksums import sealed_tensors
from locus.errors import LocusError
from locus.files import atomic, load_json, save_json
from locus.geometry import LARGEST_LENGTH
from locus.model.authors import authors_head
from locus.model.card import card
from locus.model.head_kinds import BLOCKS, DIMENSION, KAPPA, TAU, HeadKind
from locus.model.heads import build
from locus.model.shipped import MODELS
from locus.opening import read, read_text
from locus.scenes.reading import AnyImage

CONFIG, WEIGHTS = "config.json", "model.safetensors"
LARGEST_DIMENSION, LARGEST_RESOLUTION, MOST_SCALES = 65_536, 16_384, 64  # beyond any use; a file may claim more
HUB_OPTIONS = ("revision", "cache_dir", "force_download", "local_files_only", "token")


class ModelError(LocusError):
    """A model that cannot be built or loaded."""


class LoCUS(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="locus-features",
    tags=["locus", "place-recognition", "robotics"],
    license="mit",
):
    """Patch features that are the same for the same spot in the world, whatever the viewpoint.

    Args:
        backbone: A name, Hugging Face id or folder for `locus.backbones.loading`, or a loaded backbone.
        layer: Blocks of the backbone that are run. By default all.
        dimension: Length of a feature.
        radii: One scale each: how far apart, in metres, two points may be and still be the same spot.
        head: `paper`, `linear`, `blocks`, or `identity` (the backbone itself).
        blocks: How many pretrained blocks after `layer` go on learning, with the head `blocks`.
        norm: Whether the backbone's final norm is applied to its tokens.
        attention_scale: Of the paper's head; by default one over the root of a head's width.
        resolution: Pixels of an image's shorter side before it is cut into patches. By default as it is.
        kappa: Of the objective it was trained with (eq. 4), by which the landmarks of its maps are chosen.
        tau: The same (eq. 3). The defaults are those of models saved before this was kept.
    """

    def __init__(
        self,
        backbone: str | Backbone,
        layer: int | None = None,
        dimension: int = DIMENSION,
        radii: Sequence[float] = (0.2,),
        *,
        head: HeadKind,
        blocks: int = BLOCKS,
        norm: bool | None = None,
        attention_scale: float | None = None,
        resolution: int | None = None,
        kappa: float = KAPPA,
        tau: float = TAU,
    ) -> None:
        super().__init__()
        if not 0 < len(radii) <= MOST_SCALES or not all(0 < radius < LARGEST_LENGTH for radius in radii):
            raise ModelError(f"radii are positive numbers of metres, one a scale, not {tuple(radii)}")
        if not 1 <= dimension <= LARGEST_DIMENSION:
            raise ModelError(f"dimension is a number from 1 to {LARGEST_DIMENSION}, not {dimension}")
        if resolution is not None and not 1 <= resolution <= LARGEST_RESOLUTION:
            raise ModelError(f"resolution is a number of pixels from 1 to {LARGEST_RESOLUTION}, not {resolution}")
        if not (1 <= kappa < 1e9 and 0 < tau < 1e9):
            raise ModelError(f"kappa is at least 1 and tau a positive number, below a billion, not {kappa} and {tau}")
        if isinstance(backbone, str):
            backbone = backbones.load(backbone, layer, norm=norm)
        elif layer not in (None, backbone.layer) or norm not in (None, backbone.norm):
            raise ModelError(f"{backbone.name} is loaded with layer {backbone.layer} already, not {layer}")
        self.backbone = backbone
        self.source = ""  # what it was loaded by: a name, or its folder
        self.radii = tuple(float(radius) for radius in radii)
        self.dimension = backbone.dimension if head == "identity" else dimension
        self.resolution = resolution
        self.kappa, self.tau = kappa, tau
        scales = len(self.radii)
        self.head = build(head, backbone, dimension, scales, blocks=blocks, attention_scale=attention_scale)
        self.config: dict[str, Any] = {
            "backbone": backbone.name,
            "backbone_fingerprint": backbone.fingerprint,
            "layer": backbone.layer,
            "norm": backbone.norm,
            "dimension": dimension,
            "radii": self.radii,
            "head": head,
            "blocks": blocks,
            "attention_scale": attention_scale,
            "resolution": resolution,
            "kappa": kappa,
            "tau": tau,
        }
        self.eval()

    @property
    def patch_size(self) -> int:
        return self.backbone.patch_size

    @property
    def name(self) -> str:
        """For prints and files: what the features are made with."""
        return f"{self.backbone.name} layer {self.backbone.layer}, {self.config['head']} head"

    def size(self, width: int, height: int) -> tuple[int, int]:
        """The (width, height) in pixels, whole patches, that an image is resized to."""
        return self.backbone.size(width, height, self.resolution)

    def grid(self, width: int, height: int) -> tuple[int, int]:
        """The (rows, columns) of an image's features."""
        resized = self.size(width, height)
        return resized[1] // self.patch_size, resized[0] // self.patch_size

    def prepare(self, image: AnyImage) -> UInt8[Tensor, "3 rows columns"]:
        """An image resized as the model wants it."""
        return self.backbone.prepare(image, self.resolution)

    def head_features(
        self, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]
    ) -> Float[Tensor, "scales b rows columns c"]:
        """Features from the backbone's tokens, which may come from a cache."""
        features = self.head(sequence, grid).unflatten(-1, (len(self.radii), -1))  # (b, patches, scales, c)
        return F.normalize(features.movedim(2, 0), dim=-1).unflatten(2, grid)

    def forward(
        self, images: UInt8[Tensor, "b 3 height width"] | Float[Tensor, "b 3 height width"]
    ) -> Float[Tensor, "scales b rows columns c"]:
        """Unit-length features of prepared RGB images (bytes, or floats in [0, 1])."""
        with torch.no_grad():
            sequence, grid = self.backbone(images)
        return self.head_features(sequence, grid)

    @torch.no_grad()
    def features(self, image: AnyImage) -> Float[Tensor, "scales rows columns c"]:
        """Unit-length features of one image of any size, on a grid of patches that spans it.

        The image is an array of RGB bytes, a PIL image or a file.
        """
        device = next(self.buffers()).device
        return self(self.prepare(image)[None].to(device))[:, 0]

    def train(self, mode: bool = True) -> "LoCUS":
        """The backbone stays as it is: frozen."""
        super().train(mode)
        self.backbone.eval()
        return self

    @property
    def fingerprint(self) -> str:
        """A hash of all that tells what features come out; kappa and tau do not."""
        config = {name: value for name, value in self.config.items() if name not in ("kappa", "tau")}
        digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
        for name, weight in sorted(self.head.state_dict().items()):
            digest.update(name.encode() + weight.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def write(self, save_directory: Path) -> None:
        """What was learned, and the name of what was not, for `from_pretrained`; each file whole at any moment."""
        learned = {name: weight.detach().cpu().contiguous() for name, weight in self.head.state_dict().items()}
        with atomic(save_directory / WEIGHTS) as file:
            file.write_bytes(sealed_tensors(serialize(learned)))
        save_json(save_directory / CONFIG, dict(sorted(self.config.items())))

    _save_pretrained = write  # as the hub's mixin calls it

    def generate_model_card(self, *arguments: Any, **options: Any) -> ModelCard:
        """The page beside the files, here and on the hub."""
        return ModelCard(card(self.config, self.dimension))

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> "LoCUS":
        """A saved model: one that comes with LoCUS (`locus-small`), a folder (a run's too), or a Hugging Face id.

        Its backbone is loaded by the name it was saved with; `backbone=` gives another place to find the same weights.
        """
        name = str(MODELS.get(str(pretrained_model_name_or_path), pretrained_model_name_or_path))
        alone = not Path(name).is_dir() and not hub_answers()
        if alone:
            options["local_files_only"] = True  # it may have been fetched before
        try:
            if (config := Path(name) / CONFIG).exists():
                load_json(config)  # before the hub's own client opens it, which believes all that it finds
            model = super().from_pretrained(name, **options)
            model.source = source_of(pretrained_model_name_or_path)
            return model
        except (OSError, ValueError, TypeError, AttributeError, SafetensorError) as error:
            here = Path(name).is_dir()
            what = "holds no model" if here else "is no folder, and could not be loaded from Hugging Face"
            cause = str(error).strip().split("\n")[0]
            if alone and isinstance(error, OSError):
                cause = "the hub does not answer, and it was not fetched before"
            raise ModelError(f"{name} {what}: {cause}") from error

    @classmethod
    def _from_pretrained(cls, *, model_id: str, config: dict[str, Any] | None = None, **options: Any) -> "LoCUS":
        if config is None or "backbone_fingerprint" not in config:
            raise ModelError(f"{model_id} has no {CONFIG} of a LoCUS model")
        if config.get("head") not in get_args(HeadKind):
            raise ModelError(f"{model_id} has a head {config.get('head')!r}, which this version of LoCUS does not know")
        of_hub = {name: options.pop(name) for name in HUB_OPTIONS}
        file = Path(model_id) / WEIGHTS
        if not Path(model_id).is_dir():
            load_json(Path(hf_hub_download(model_id, CONFIG, **of_hub)))
            file = Path(hf_hub_download(model_id, WEIGHTS, **of_hub))
        model = cls(**options)
        if model.backbone.fingerprint != config["backbone_fingerprint"]:
            raise ModelError(
                f"{model_id} was learned on a {config['backbone']} with weights {config['backbone_fingerprint']}, but "
                f"{model.backbone.name} has {model.backbone.fingerprint} here: its features would mean nothing"
            )
        _load_learned(model.head, deserialize(read(file)), model_id)
        return model

    @classmethod
    def from_authors(cls, path: str | Path, backbone: str | Backbone = "dino-vitb8", radius: float = 0.2) -> "LoCUS":
        """A checkpoint released by the paper's authors: `locus_dino_rad0.2m_ep20.pth`, or 0.6 m with `radius=0.6`.

        It sits on DINO ViT-B/8 after block 11; its attention is scaled by 0.125, not by the 0.177 of its width.
        """
        layer = 11 if isinstance(backbone, str) else None
        model = cls(backbone, layer, radii=(radius,), head="paper", attention_scale=0.125)
        _load_learned(model.head, authors_head(Path(path)), path)
        return model


def load(name: str, layer: int | None = None) -> LoCUS:
    """A trained model, as of `from_pretrained`; or a backbone as it is, by name or by its folder."""
    config = Path(name) / CONFIG
    network = config.is_file() and "backbone_fingerprint" not in read_text(config)
    known = {"classic", *backbones.VARIANTS, *(variant.hub for variant in backbones.VARIANTS.values())}
    if name in known or network:
        bare = LoCUS(name, layer, head="identity")
        bare.source = source_of(name)
        return bare
    if layer is not None:
        raise ModelError(f"{name} is a trained model, whose layer is fixed; leave --layer out")
    return LoCUS.from_pretrained(name)


def source_of(name: str | Path) -> str:
    """What a model can be loaded by from anywhere: a folder by its whole path, others by name."""
    return str(Path(name).resolve()) if str(name) not in MODELS and Path(name).is_dir() else str(name)


def hub_answers() -> bool:
    """Whether the Hugging Face hub can be reached: one brief try, where its own client goes on for half a minute."""
    try:
        get_session().head(constants.ENDPOINT, timeout=5.0)
    except Exception:  # of whichever HTTP library this version of the client is built on
        return False
    return True


def _load_learned(head: nn.Module, learned: dict[str, Tensor], source: str | Path) -> None:
    """Fill a head; every weight must be there, fit, and be wanted."""
    if wrong := mismatches(learned, {name: weight.shape for name, weight in head.state_dict().items()}):
        raise ModelError(f"{source} does not fit the head: {wrong}")
    if bad := [name for name, weight in learned.items() if not weight.isfinite().all()]:
        raise ModelError(f"{source} has weights that are not numbers ({bad[0]}); make or fetch it again")
    head.load_state_dict(learned)
