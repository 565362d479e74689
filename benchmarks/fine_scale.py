"""A learned fine scale, tried: features every 4 pixels by LoCUS's own objective, as descriptors of XFeat's keypoints.

    python benchmarks/fine_scale.py fine.safetensors --train HOUSE... --places SCENE...

The head, a shallow convolution on the image plus early tokens of the frozen backbone on the finer grid, is trained on
crops of frames around the same spot and written to the file; a file that is there is not trained again. Then XFeat's
keypoints are matched, as mutual nearest neighbours, by its own descriptors and by the head's, alone, together, and with
LoCUS features: the share of true matches found, and the pose's AUC. Scenes of one folder are one place.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
import tyro
from jaxtyping import Float, UInt8
from numpy import ndarray
from safetensors.torch import load_file, save
from torch import Tensor, nn

from locus.backbones import Backbone, load
from locus.evaluation.matchers import mutual
from locus.evaluation.metrics import area_under_curve, error_of
from locus.evaluation.pairs import OVERLAP, between, draw_pairs
from locus.evaluation.scene_patches import ScenePatches, read_patches
from locus.files import atomic
from locus.geometry import invert, transform
from locus.keypoints import Detector, Keypoints, detector, fuse, sample
from locus.keypoints.fusion import PlacedKeypoints, usual_weights
from locus.model import LoCUS
from locus.objective import RetrievalObjective, draw_landmarks
from locus.scenes import Frame, Scene, load_scene
from locus.scenes.patches import patch_centres, points_at
from locus.tasks.matching import matched_pixels
from locus.tasks.relative_pose import relative_pose
from locus.training.glue_pairs import PlacedFrame, true_matches

BACKBONE, BLOCKS = "dinov2-small-focus", 2  # locus-small's own, after its second block
RESOLUTION, STRIDE, DIMENSION = 420, 4, 64  # the image's shorter side, pixels between features, and their length
RADIUS, KAPPA, TAU, LANDMARKS = 0.04, math.inf, 0.01, 256  # every other spot of a batch is a negative
CROP, VIEWS, NEAR = 168, 6, 0.05  # pixels; crops of a batch; metres that a spot's depth may be off where it is seen
RATE, WARMUP, LONGEST, TOLD = 2e-3, 30, 1.0, 100  # of the optimiser; steps between two lines of progress

Crop = tuple[Float[Tensor, "3 side side"], Float[Tensor, "n 3"]]  # pixels, and points that their features show


@dataclass(frozen=True)
class Arguments:
    weights: Annotated[Path, tyro.conf.Positional]
    """The head: used if it is there, else trained and written."""
    train: tuple[Path, ...] = ()
    """Scenes with exact depth to train on."""
    places: tuple[Path, ...] = ()
    """Scenes to evaluate on."""
    steps: int = 3000
    """Of training; a quarter of a second of one core each."""
    pairs: int = 15
    """Of frames, for each place and range of overlap."""


class FineHead(nn.Module):
    """Features every `STRIDE` pixels that see about 60 pixels around, and through the tokens a bit of the rest."""

    def __init__(self, backbone: Backbone, width: int = DIMENSION) -> None:
        super().__init__()
        self.backbone = [backbone]  # in a list: it is frozen, and none of the head's weights
        halves = nn.Conv2d(3, width // 2, 4, stride=2, padding=1), nn.Conv2d(width // 2, width, 4, stride=2, padding=1)
        self.stem = nn.Sequential(halves[0], nn.GELU(), halves[1])
        self.tokens = nn.Sequential(nn.LayerNorm(backbone.dimension), nn.Linear(backbone.dimension, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.mixing = nn.ModuleList([nn.Conv2d(width, width, 3, padding=d, dilation=d) for d in (1, 2, 4)])
        self.last = nn.Linear(width, width)

    def forward(self, images: Float[Tensor, "b 3 height width"]) -> Float[Tensor, "b rows columns c"]:
        """Of images in [0, 1] whose sides are whole patches."""
        frozen, whole = self.backbone[0], [STRIDE * round(side / STRIDE) for side in images.shape[-2:]]
        normal = F.interpolate((images - frozen.mean) / frozen.std, whole, mode="bilinear", align_corners=False)
        fine, coarse = self.stem(normal), self.tokens(frozen.tokens(images)).permute(0, 3, 1, 2)
        fine = fine + F.interpolate(coarse, fine.shape[-2:], mode="bilinear", align_corners=False)
        for norm, mix in zip(self.norms, self.mixing, strict=True):
            fine = fine + mix(F.gelu(norm(fine.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)))
        return F.normalize(self.last(fine.permute(0, 2, 3, 1)), dim=-1)


def draw_crops(scene: Scene, backbone: Backbone, random: np.random.Generator) -> dict[int, Crop]:
    """Of a random spot, from frames that see it, at most `VIEWS`, by their numbers."""
    first, crops = scene[int(random.integers(len(scene)))], {}
    pixel = random.uniform(0, (first.camera.width, first.camera.height), (1, 2))
    spot = transform(first.world_from_camera, points_at(first.depth, first.camera, pixel))
    for number in random.permutation(len(scene)).tolist():
        frame = scene[number]
        at, depth = frame.camera.project(transform(invert(frame.world_from_camera), spot))
        size = np.array((frame.camera.width, frame.camera.height))
        if len(crops) < VIEWS and depth[0] > 0 and ((at[0] >= 0) & (at[0] < size)).all():
            x, y = at[0].astype(int)
            if abs(frame.depth[y, x] - depth[0]) <= NEAR:
                crops[number] = crop_of(frame, at[0] / size, backbone, random)
    return crops


def crop_of(frame: Frame, spot: Float[ndarray, " 2"], backbone: Backbone, random: np.random.Generator) -> Crop:
    """Around a spot, given as shares of the image's sides, but not always in its middle; the light is changed a bit."""
    image = backbone.prepare(frame.image, RESOLUTION)
    whole = np.array((image.shape[2], image.shape[1]))
    x, y = (spot * whole - CROP * random.uniform(0.25, 0.75, 2)).clip(0, whole - CROP).astype(int)
    light = image[:, y : y + CROP, x : x + CROP] / 255 * random.uniform(0.7, 1.3) + random.uniform(-0.1, 0.1)
    centres = (patch_centres((CROP // STRIDE, CROP // STRIDE), CROP, CROP) + np.array((x, y))) / whole
    seen = points_at(frame.depth, frame.camera, centres.reshape(-1, 2) * (frame.camera.width, frame.camera.height))
    return light.clamp(0, 1), torch.from_numpy(transform(frame.world_from_camera, seen)).float()


def train(head: FineHead, arguments: Arguments) -> None:
    """By V-Smooth-AP, a spot of a house a step."""
    scenes, random, values = [load_scene(path) for path in arguments.train], np.random.default_rng(0), []
    objective = RetrievalObjective(RADIUS, KAPPA, TAU, exclude_same_frame=True)
    optimiser = torch.optim.AdamW(head.parameters(), RATE)
    while len(values) < arguments.steps:
        crops = draw_crops(scenes[int(random.integers(len(scenes)))], head.backbone[0], random)
        if not crops:  # the spot's depth is not known
            continue
        images, points = (list(parts) for parts in zip(*crops.values(), strict=True))
        frames = torch.tensor(list(crops)).repeat_interleave(len(points[0]))
        geometry = torch.cat(points), torch.zeros_like(frames), frames
        landmarks = draw_landmarks(*geometry, RADIUS, LANDMARKS, random)
        if not len(landmarks):
            continue
        value = objective(head(torch.stack(images)).flatten(0, 2), *geometry, landmarks)
        optimiser.zero_grad()
        (1 - value).backward()
        nn.utils.clip_grad_norm_(head.parameters(), LONGEST)
        cosine = 0.5 + 0.5 * math.cos(math.pi * len(values) / arguments.steps)
        optimiser.param_groups[0]["lr"] = RATE * cosine * min(1, (len(values) + 1) / WARMUP)
        optimiser.step()
        values.append(value.item())
        if len(values) % TOLD == 0:
            mean, seconds = np.mean(values[-TOLD:]), time.process_time()
            print(f"step {len(values)}: V-Smooth-AP {mean:.3f}, {seconds:.0f} s of processor time", flush=True)
    with atomic(arguments.weights) as file:
        file.write_bytes(save(head.state_dict()))


@torch.inference_mode()
def described(image: UInt8[ndarray, "h w 3"], finder: Detector, model: LoCUS, head: FineHead) -> dict[str, Keypoints]:
    """The keypoints of an image with every kind of descriptor."""
    keypoints, places = finder.detect(image), model.features(image)
    fine = head(head.backbone[0].prepare(image, RESOLUTION)[None] / 255)
    own = sample(fine, keypoints.pixels, keypoints.size)[0]
    both = torch.cat([keypoints.descriptors, own], dim=1) / math.sqrt(2)
    kinds = zip(("XFeat", "fine", "XFeat + fine"), (keypoints.descriptors, own, both), strict=True)
    alone = {name: replace(keypoints, descriptors=each) for name, each in kinds}
    return alone | {f"{name} + LoCUS": fuse(each, places, usual_weights(len(places))) for name, each in alone.items()}


def compared(patches: ScenePatches, pairs: int, *networks: Any) -> Iterator[tuple[float, str, float, float]]:
    """Of every pair and method: overlap, method, share of true matches found, and the worse angle in degrees."""
    seen = cache(lambda row: described(patches.frame(row).image, *networks))
    for pair in draw_pairs(patches, pairs, seed=0):
        found = [(patches.frame(row), seen(row)["XFeat"]) for row in (pair.a, pair.b)]
        shots = [PlacedFrame.of(frame, PlacedKeypoints(each, torch.zeros(0, len(each), 1))) for frame, each in found]
        partner, _ = true_matches(*shots)
        for (name, first), second in zip(seen(pair.a).items(), seen(pair.b).values(), strict=True):
            rows, scores = mutual(first, second)
            right = (partner[rows[:, 0]] == rows[:, 1]).sum() / max(1, (partner >= 0).sum())
            pixels = first.pixels[rows[:, 0]], second.pixels[rows[:, 1]]
            answer = relative_pose(matched_pixels(*pixels, scores, first.size, second.size), *pair.cameras).b_from_a
            error = None if answer is None else error_of(answer, pair.b_from_a, scale_from_truth=True)
            yield pair.overlap, name, float(right), math.inf if error is None else max(error[1:])


def main(arguments: Arguments) -> None:
    torch.manual_seed(0)
    head = FineHead(load(BACKBONE, BLOCKS))
    if not arguments.weights.exists():
        train(head, arguments)
    head.load_state_dict(load_file(arguments.weights))
    networks = detector("xfeat"), LoCUS.from_pretrained("locus-small"), head.eval()
    for _, group in groupby(arguments.places, lambda path: path.parent):
        scenes = [read_patches(load_scene(path)) for path in group]
        pairs = math.ceil(arguments.pairs / len(scenes))
        results = [row for patches in scenes for row in compared(patches, pairs, *networks)]
        print(f"\n{', '.join(patches.scene.name for patches in scenes)}")
        for low, high in pairwise(OVERLAP):
            inside = [row for row in results if between(np.array(row[0]), low, high)]
            for name in dict.fromkeys(row[1] for row in inside):
                found, angles = np.array([row[2:] for row in inside if row[1] == name]).T
                areas = ", ".join(f"{area_under_curve(angles, limit):.3f}" for limit in (5.0, 10.0, 20.0))
                print(f"{low:g}–{high:g}, {len(found)} pairs, {name}: found {found.mean():.3f}, AUC {areas}")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
