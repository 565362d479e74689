"""A video with its camera's trajectory: `clip.mp4`, `clip.txt` in TUM's format, and `clip.calibration.txt`.

`calibration.txt` will do for all videos of a folder. A pose is that of the frame nearest to its time, so that there are
as many frames as there are poses at most. Times are seconds from the first frame; whole numbers alone are the frames'
numbers, which is what programs write that know no times. There is no depth.
"""

from pathlib import Path

import numpy as np

from locus.errors import SceneError
from locus.geometry import pose_matrices
from locus.scenes.formats.tum import calibration_numbers, pose_numbers, read_list
from locus.scenes.reading import path_inside
from locus.scenes.scene import Scene
from locus.scenes.timing import poses_at
from locus.scenes.video import VIDEO_SUFFIXES, Video, VideoFrame


def detect(path: Path) -> bool:
    if path.suffix.lower() not in VIDEO_SUFFIXES or not path.is_file():
        return False
    return path.with_suffix(".txt").is_file() and any(file.is_file() for file in calibration_files(path))


def calibration_files(path: Path) -> tuple[Path, Path]:
    return path.with_suffix(".calibration.txt"), path.with_name("calibration.txt")


def read(path: Path, allow_outside: bool) -> Scene:
    trajectory = path_inside(path.parent, path.with_suffix(".txt").name, allow_outside)
    found = [file for file in calibration_files(path) if file.is_file()]
    if not trajectory.is_file() or not found:
        raise SceneError(
            f"{path} needs a trajectory, {trajectory.name}, and {calibration_files(path)[0].name} with 'fx fy cx cy' "
            "and, if its lens distorts, 'k1 k2 p1 p2 k3' on one line"
        )
    calibration = calibration_numbers(path_inside(path.parent, found[0].name, allow_outside))
    video = Video(path)
    skipped: dict[str, str] = {}
    times, rows = read_list(trajectory, 7, skipped)
    values = pose_numbers(rows, trajectory)
    numbered = bool((times == np.rint(times)).all())
    numbers = times if numbered else np.rint(times * video.rate)
    count = video.count()  # no more than a limit: a file can claim any number of frames
    for time in times[(numbers < 0) | (numbers >= count)].tolist():
        where = f"number {time:.0f}" if numbered else f"at {time:.6g} s"
        skipped[f"frame {where}"] = f"the video has {count} frames at {video.rate:g} a second, counted from 0"
    wanted = np.unique(numbers[(numbers >= 0) & (numbers < count)])
    if numbered:
        poses = pose_matrices(values[np.isin(numbers, wanted)])
        posed = np.ones(len(wanted), bool)
    else:
        poses, posed = poses_at(wanted / video.rate, times, values)
    sources = []
    for number, pose, has_pose in zip(wanted.astype(int).tolist(), poses, posed.tolist(), strict=True):
        name = f"{number:06d}"
        if has_pose:
            sources.append(VideoFrame(name, video, number, pose, calibration))
        else:
            skipped[name] = f"no pose at its time {number / video.rate:.6f}"
    return Scene(path.stem, "video", sources, skipped=skipped)
