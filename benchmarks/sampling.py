"""How many landmarks are of use, drawn in space or from patches? `python benchmarks/sampling.py SCENE... [--radius M]`.

The paper: of landmarks drawn uniformly in space, more than 94 % are not seen by more than two views (Matterport3D).
Here: points drawn uniformly in the box around all that a scene's frames see, or patches drawn uniformly from all
frames; a frame sees a landmark if one of its patches lies within the radius of it.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from locus import load_scene
from locus.scenes import patch_points

GRID = (18, 24)
DRAWN = 5000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+", type=Path)
    parser.add_argument("--radius", type=float, default=0.2)
    arguments = parser.parse_args()
    print(
        f"landmarks not seen by more than two frames, {arguments.radius:g} m\n{'scene':<30} {'space':>7} {'patches':>8}"
    )
    for path in arguments.scenes:
        scene = load_scene(path)
        found = [patch_points(frame, GRID) for frame in scene]
        points = np.concatenate([place[valid] for place, valid in found])
        frame_of = np.repeat(np.arange(len(scene)), [int(valid.sum()) for _, valid in found])
        rng = np.random.default_rng(0)
        in_space = rng.uniform(points.min(axis=0), points.max(axis=0), (DRAWN, 3))
        of_patches = points[rng.integers(len(points), size=DRAWN)]
        shares = [unseen(drawn, points, frame_of, arguments.radius) for drawn in (in_space, of_patches)]
        print(f"{scene.name:<30} {shares[0]:>7.1%} {shares[1]:>8.1%}", flush=True)


def unseen(drawn: np.ndarray, points: np.ndarray, frame_of: np.ndarray, radius: float) -> float:
    near = KDTree(points).query_ball_point(drawn, radius)
    return float(np.mean([len(np.unique(frame_of[index])) <= 2 for index in near]))


if __name__ == "__main__":
    main()
