"""What matching two images costs, stage by stage, beside the transformer's own time.

    python benchmarks/match.py SCENE [--model NAME]

Two frames of the scene that are close in time, at their own size. The last line is the whole, as a multiple of the
transformer's time.
"""

import argparse
from collections.abc import Callable
from statistics import median
from timeit import repeat

import torch

from locus import load_scene
from locus.keypoints.fusion import point_scales
from locus.model import load
from locus.model.shipped import DEFAULT
from locus.tasks.matching import Rule, match
from locus.tasks.placed_points import match_points, placed_points
from locus.tasks.relative_pose import relative_pose

REPEATS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene")
    parser.add_argument("--model", default=DEFAULT)
    arguments = parser.parse_args()
    model, scene = load(arguments.model), load_scene(arguments.scene)
    frames = [scene[0], scene[len(scene) // 24]]
    images, cameras = [frame.image for frame in frames], [frame.camera for frame in frames]
    print(f"{torch.get_num_threads()} threads, two images of {cameras[0].width}×{cameras[0].height}, {model.name}\n")
    features = [model.features(image)[point_scales(model.radii)] for image in images]
    placed = [placed_points(image, of_image) for image, of_image in zip(images, features, strict=True)]
    matches = match_points(*placed)
    sizes = [(camera.width, camera.height) for camera in cameras]
    stages: dict[str, Callable[[], object]] = {
        "features (the transformer)": lambda: [model.features(image) for image in images],
        f"keypoints ({', '.join(str(len(each)) for each in placed)})": lambda: [
            placed_points(image, of_image) for image, of_image in zip(images, features, strict=True)
        ],
        f"matching ({len(matches)} matches)": lambda: match_points(*placed),
        "patches matched instead": lambda: match(*features, *sizes, Rule()),
        "pose, five points": lambda: relative_pose(matches, *cameras),
    }
    seconds = {name: median(repeat(stage, number=1, repeat=REPEATS)) for name, stage in stages.items()}
    for name, taken in seconds.items():
        print(f"{name:32} {1e3 * taken:7.0f} ms")
    transformer, keypoints, matching, _, pose = seconds.values()
    whole = transformer + keypoints + matching + pose
    print(f"{'all':32} {1e3 * whole:7.0f} ms, {whole / transformer:.1f} × the transformer")


if __name__ == "__main__":
    main()
