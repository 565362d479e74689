"""Camera poses as a trajectory file of the TUM RGB-D benchmark: `time tx ty tz qx qy qz qw`, one pose a line."""

from collections.abc import Mapping
from pathlib import Path

from jaxtyping import Float
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus.files import atomic


def write_trajectory(path: Path, poses: Mapping[str, Float[ndarray, "4 4"]]) -> None:
    """Write `world_from_camera` poses (OpenCV axes, as TUM's) by the time, or else the number, that names each image.

    Where names are not numbers, images are numbered from 0 and a comment says which is which.
    """
    numeric = all(is_number(name) for name in poses)
    lines = ["# time tx ty tz qx qy qz qw"]
    for number, (name, pose) in enumerate(poses.items()):
        values = (*pose[:3, 3], *Rotation.from_matrix(pose[:3, :3]).as_quat())
        if not numeric:
            lines.append(f"# {number} is {name}".replace("\n", " "))
        lines.append(" ".join([name if numeric else str(number), *(f"{value:.6f}" for value in values)]))
    with atomic(path) as file:
        file.write_text("\n".join(lines) + "\n")


def is_number(name: str) -> bool:
    return name.replace(".", "", 1).isdecimal()
