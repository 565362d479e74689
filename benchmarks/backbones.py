"""How well untrained backbones know places, block by block, and what removing their sense of image position gains.

    python benchmarks/backbones.py SCENE... --fit SCENE... [--backbone NAME] [--layers 5 7 9 11] [--remedies]

Prints, as the mean over the scenes: exact cross-view AP at 0.2 m (κ = 50) of PCA-64, plain and whitened, fitted on the
other scenes given with --fit; and the share of nearest neighbours between wide-baseline frames that lie within three
patches of the same image position although the right place is further away ("stuck").
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from locus import backbones, load_scene
from locus.features.cache import CachedScene
from locus.model.pca import principal_components
from locus.objective import average_precision, retrieval_sets
from locus.scenes.patches import patch_points
from locus.scenes.visibility import overlap
from locus.training.batches import Environment

FRAMES, BATCHES, LANDMARKS, RADIUS, KAPPA = 16, 2, 256, 0.2, 50.0
SHIFT = 4  # patches
ERASED = 16  # directions of token space


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--fit", nargs="+", required=True)
    parser.add_argument("--backbone", default="dinov2-small-focus")
    parser.add_argument("--layers", nargs="+", type=int, default=[5, 7, 9, 11])
    parser.add_argument("--resolution", type=int, default=252)
    parser.add_argument("--remedies", action="store_true", help="try remedies for the position bias at each layer")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    fitted = [draw(Path(scene), 1) for scene in arguments.fit]
    tested = [draw(Path(scene), BATCHES) for scene in arguments.scenes]
    print(f"{'layer':>5} {'remedy':<10} {'PCA-64':>7} {'whitened':>8} {'stuck':>6}   by scene (whitened)", flush=True)
    for layer in arguments.layers:
        backbone = backbones.load(arguments.backbone, layer, norm=True)
        names = ["none", "shifts", "mirror", "blank", "constant", "erase"] if arguments.remedies else ["none"]
        for name in names:
            row(backbone, name, fitted, tested, arguments.resolution)


def draw(path: Path, batches: int) -> list:
    """Batches of overlapping frames."""
    scene = load_scene(path)
    shared = overlap(scene)
    place = CachedScene(scene.name, [], (0, 0), 0, np.zeros((0, 0, 0)), np.zeros((0, 0, 0, 3)), shared, "")
    environment = Environment([place], np.arange(len(scene)))
    rng = np.random.default_rng(0)
    return [[scene[int(i)] for i in environment.draw(rng, FRAMES)] for _ in range(batches)]


@torch.no_grad()
def row(backbone, remedy: str, fitted: list, tested: list, resolution: int) -> None:
    tokens = REMEDIES[remedy](backbone)
    rows = torch.cat([tokens(images(backbone, batch, resolution)).flatten(0, 2) for (batch,) in fitted])
    if remedy == "erase":
        directions = position_directions(backbone, fitted, resolution)
        plain = tokens

        def tokens(pixels: Tensor) -> Tensor:
            found = plain(pixels)
            return found - found @ directions.T @ directions

        rows = rows - rows @ directions.T @ directions
    maps = {"plain": principal_components(rows, 64), "whitened": principal_components(rows, 64, whiten=True)}
    values: dict[str, list[float]] = {"plain": [], "whitened": [], "stuck": []}
    for batches in tested:
        found = [measure(tokens(images(backbone, batch, resolution)), batch, maps) for batch in batches]
        for key in values:
            values[key].append(float(np.mean([each[key] for each in found])))
    by_scene = " ".join(f"{value:.3f}" for value in values["whitened"])
    print(
        f"{backbone.layer:>5} {remedy:<10} {np.mean(values['plain']):>7.3f} {np.mean(values['whitened']):>8.3f} "
        f"{np.mean(values['stuck']):>6.2f}   {by_scene}",
        flush=True,
    )


def images(backbone, batch: list, resolution: int) -> Tensor:
    return torch.stack([backbone.prepare(frame.image, resolution) for frame in batch])


def measure(tokens: Tensor, batch: list, maps: dict) -> dict[str, float]:
    grid = tokens.shape[1:3]
    points = np.stack([patch_points(frame, tuple(grid))[0] for frame in batch])
    positions = torch.from_numpy(points).reshape(-1, 3).float()
    frames = torch.arange(len(batch)).repeat_interleave(grid[0] * grid[1])
    known = torch.isfinite(positions).all(dim=1).nonzero()[:, 0]
    landmarks = known[torch.from_numpy(np.random.default_rng(0).choice(len(known), LANDMARKS, replace=False))]
    positive, universe = retrieval_sets(
        positions, torch.zeros_like(frames), frames, landmarks, RADIUS, KAPPA, exclude_same_frame=True
    )
    values = {}
    for name, components in maps.items():
        rows = F.normalize(components(tokens.flatten(0, 2)), dim=1)
        values[name] = float(average_precision(rows @ rows[landmarks].T, positive, universe))
    return values | {"stuck": stuck(rows, positions, frames, landmarks, tuple(grid))}


def stuck(rows: Tensor, positions: Tensor, frames: Tensor, landmarks: Tensor, grid: tuple[int, int]) -> float:
    """Nearest neighbours in other frames: the share at their own image position, of those with no right one there."""
    scores = rows @ rows[landmarks].T
    scores[frames[:, None] == frames[landmarks]] = -2
    nearest = scores.argmax(dim=0)
    place = torch.arange(len(rows)) % (grid[0] * grid[1])
    y, x = place // grid[1], place % grid[1]
    near = ((y[nearest] - y[landmarks]).abs() <= 3) & ((x[nearest] - x[landmarks]).abs() <= 3)
    wrong = ~((positions[nearest] - positions[landmarks]).norm(dim=1) <= 3 * RADIUS)
    return float((near & wrong).float().mean())


def shifts(backbone) -> Callable[[Tensor], Tensor]:
    """The mean over the image moved by a few patches each way, its border repeated."""

    def tokens(pixels: Tensor) -> Tensor:
        total = backbone.tokens(pixels)
        step = SHIFT * backbone.patch_size
        padded = F.pad(pixels.float() / 255, (step,) * 4, mode="reflect")
        rows, columns = total.shape[1:3]
        height, width = pixels.shape[-2:]
        count = torch.ones(rows, columns, 1)
        for dy, dx in ((SHIFT, 0), (-SHIFT, 0), (0, SHIFT), (0, -SHIFT)):
            top, left = step + dy * backbone.patch_size, step + dx * backbone.patch_size
            moved = backbone.tokens(padded[..., top : top + height, left : left + width])
            target = (slice(max(dy, 0), rows + min(dy, 0)), slice(max(dx, 0), columns + min(dx, 0)))
            origin = (slice(max(-dy, 0), rows + min(-dy, 0)), slice(max(-dx, 0), columns + min(-dx, 0)))
            total[(slice(None), *target)] += moved[(slice(None), *origin)]
            count[target] += 1
        return total / count

    return tokens


def mirror(backbone) -> Callable[[Tensor], Tensor]:
    """The mean over the image and its mirror image."""
    return lambda pixels: (backbone.tokens(pixels) + backbone.tokens(pixels.flip(3)).flip(2)) / 2


def blank(backbone) -> Callable[[Tensor], Tensor]:
    """Less the tokens of an image of one colour."""

    def tokens(pixels: Tensor) -> Tensor:
        grey = backbone.mean.expand(1, 3, *pixels.shape[-2:]).contiguous()
        return backbone.tokens(pixels) - backbone.tokens(grey)

    return tokens


def constant(backbone) -> Callable[[Tensor], Tensor]:
    """The same position code everywhere: the mean of all."""

    def tokens(pixels: Tensor) -> Tensor:
        codes = backbone.network.embeddings.position_embeddings
        kept = codes.data.clone()
        codes.data[:, 1:] = kept[:, 1:].mean(dim=1, keepdim=True)
        found = backbone.tokens(pixels)
        codes.data.copy_(kept)
        return found

    return tokens


def position_directions(backbone, fitted: list, resolution: int) -> Tensor:
    """The directions along which the mean token of each image position varies most, over the scenes fitted on."""
    found = [backbone.tokens(images(backbone, batch, resolution)) for (batch,) in fitted]
    shape = found[0].shape[1:3]
    average = torch.cat([each for each in found if each.shape[1:3] == shape]).mean(dim=0).flatten(0, 1)
    return principal_components(average, ERASED).directions


REMEDIES = {
    "none": lambda backbone: backbone.tokens,
    "shifts": shifts,
    "mirror": mirror,
    "blank": blank,
    "constant": constant,
    "erase": lambda backbone: backbone.tokens,
}

if __name__ == "__main__":
    main()
