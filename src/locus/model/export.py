"""A trained model for use elsewhere: one ONNX file, checked against torch before it gets its name."""

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from locus.errors import LocusError, to_install
from locus.files import atomic
from locus.model import LoCUS

TOLERANCE = 1e-4  # of a number of a unit-length feature
INPUTS, OUTPUTS = ("batch", None, "height", "width"), (None, "batch", "rows", "columns", None)


class ExportError(LocusError):
    """A model that cannot be written in the form asked for."""


def export_onnx(model: LoCUS, path: str | Path, size: tuple[int, int] | None = None) -> Path:
    """Write `image` (b, 3, height, width; RGB in [0, 1]) to `features` (scales, b, rows, columns, c) as an ONNX file.

    Normalisation is inside; an image must be resized to whole patches before. The file holds the radii, the patch size
    and the model's name as its metadata. It takes images of any size, or of one alone, the width and height in `size`.
    """
    for package in ("onnx", "onnxruntime", "onnxscript"):
        try:
            import_module(package)
        except ImportError:
            raise ExportError(f"{package} is needed to write ONNX: {to_install('export')}, and try again") from None
    import onnx

    path = Path(path)
    samples = _samples(model, size)
    try:
        with _quiet():
            proto = _converted(model.eval(), samples[0], dynamic=size is None)
    except torch.onnx.OnnxExporterError as error:
        cause = str(error.__cause__ or error).strip().splitlines()[0]
        raise _failed(model, size, f"torch's exporter says {cause}") from error
    onnx.helper.set_model_props(proto, _metadata(model))
    with atomic(path) as file:
        onnx.save(proto, file)
        for sample in samples:
            _check(model, file, sample, size)
    return path


def _samples(model: LoCUS, size: tuple[int, int] | None) -> list[torch.Tensor]:
    """Images to convert with and to compare: two batch sizes, and two sizes of image where any may come."""
    step = model.patch_size
    # Two, five and seven, and not one, four or the network's own size: torch takes those for constants.
    shapes = [(2, 5 * step, 7 * step), (1, 4 * step, 3 * step)]
    if size is not None:
        width, height = size
        if min(size) < step or width % step or height % step:
            raise ExportError(f"a size of {width}×{height} is not a whole number of patches of {step} pixels")
        shapes = [(2, height, width), (1, height, width)]
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(batch, 3, height, width, generator=generator) for batch, height, width in shapes]


def _converted(model: LoCUS, sample: torch.Tensor, *, dynamic: bool) -> Any:
    free = torch.export.Dim.DYNAMIC
    shapes = {0: free, 2: free, 3: free} if dynamic else {0: free}
    program = torch.onnx.export(
        model, (sample,), dynamo=True, dynamic_shapes=(shapes,), input_names=["image"], output_names=["features"]
    )
    assert program is not None
    proto = program.model_proto
    for value, names in ((proto.graph.input[0], INPUTS), (proto.graph.output[0], OUTPUTS)):
        for dimension, name in zip(value.type.tensor_type.shape.dim, names, strict=True):
            if name is not None and dimension.dim_param:
                dimension.dim_param = name  # torch's own are called s34 and (s14//14)
    return proto


def _metadata(model: LoCUS) -> dict[str, str]:
    return {
        "model": model.name,
        "radii": json.dumps(model.radii),
        "patch_size": str(model.patch_size),
        "resolution": json.dumps(model.resolution),
        "fingerprint": model.fingerprint,
    }


@torch.no_grad()
def _check(model: LoCUS, file: Path, images: torch.Tensor, size: tuple[int, int] | None) -> None:
    import onnxruntime

    expected = model(images)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what fails is told below
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        given = torch.from_numpy(session.run(["features"], {"image": images.numpy()})[0])
    except Exception as error:  # onnxruntime's have no common class
        batch, _, height, width = images.shape
        raise _failed(model, size, f"onnxruntime fails on {batch} of {width}×{height} pixels") from error
    apart = float((given - expected).abs().max()) if given.shape == expected.shape else float("inf")
    if not apart <= TOLERANCE:
        raise _failed(model, size, f"a feature is {apart:.1g} off what torch computes")


def _failed(model: LoCUS, size: tuple[int, int] | None, cause: str) -> ExportError:
    if size is not None:
        return ExportError(f"{model.name} cannot be written as ONNX: {cause}")
    return ExportError(
        f"{model.name} cannot be written as ONNX for any size of image: {cause}; for one size, give --size WIDTH HEIGHT"
    )


@contextlib.contextmanager
def _quiet() -> Generator[None, None, None]:
    """Torch's exporter tells its whole life; what matters is checked afterwards."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
