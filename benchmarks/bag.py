"""What a bag of 10 GB costs: opening it, and `locus inspect` on 2,000 frames. `python benchmarks/bag.py [ros1|mcap]`.

The bag is written in seconds to a temporary folder: the file has holes between its chunks, where others have point
clouds and what else nobody asks for. Memory is the peak of a process that does nothing else.
"""

import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

FRAMES = 2000
WIDTH, HEIGHT = 320, 240
HOLE = 5_000_000  # bytes after each frame

PEAK = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)"
IMPORT = "import sys, locus, locus.cli, locus.scenes.inspection, locus.scenes.inspection_page, rosbags.highlevel; "
OPEN = IMPORT + "locus.load_scene(sys.argv[1]); " + PEAK
INSPECT = IMPORT + "locus.cli.main(['inspect', sys.argv[1], '--page', sys.argv[2]]); " + PEAK


def write(folder: Path, kind: str) -> Path:
    """A camera that slides along a textured wall, two metres before it."""
    ros1 = kind == "ros1"
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    if ros1:
        store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage"))
    path = folder / ("walk.bag" if ros1 else "walk")
    writer = Writer1(path) if ros1 else Writer2(path, version=9, storage_plugin=StoragePlugin.MCAP)
    writer.open()
    file = writer.bio if ros1 else writer.storage.bio
    types, connections = store.types, {}

    def add(topic: str, message, stamp: int) -> None:
        name = message.__msgtype__
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, name, typestore=store)
        data = store.serialize_ros1(message, name) if ros1 else store.serialize_cdr(message, name)
        writer.write(connections[topic], stamp, data)

    def header(stamp: int, frame: str):
        time = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
        return types["std_msgs/msg/Header"](**({"seq": 0} if ros1 else {}), stamp=time, frame_id=frame)

    def image(stamp: int, encoding: str, pixels: np.ndarray):
        data = np.frombuffer(pixels.tobytes(), np.uint8)
        size = (HEIGHT, WIDTH, encoding, 0, pixels[0].nbytes, data)
        return types["sensor_msgs/msg/Image"](header(stamp, "optical"), *size)

    focal = 280.0
    matrix = np.array([focal, 0, WIDTH / 2 - 0.5, 0, focal, HEIGHT / 2 - 0.5, 0, 0, 1])
    region = types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
    numbers = (np.zeros(5), matrix, np.eye(3).ravel(), np.zeros(12))
    wall = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH + FRAMES, 3), np.uint8)
    depth = np.full((HEIGHT, WIDTH), 2000, np.uint16)
    for k in range(FRAMES):
        stamp = 1_700_000_000 * 10**9 + k * 33_333_333
        add("/color/image_raw", image(stamp, "rgb8", wall[:, k : k + WIDTH]), stamp)
        add("/depth/image_raw", image(stamp, "16UC1", depth), stamp)
        info = (header(stamp, "optical"), HEIGHT, WIDTH, "plumb_bob", *numbers, 0, 0, region)
        add("/color/camera_info", types["sensor_msgs/msg/CameraInfo"](*info), stamp)
        move = types["geometry_msgs/msg/Vector3"](k * 2.0 / focal, 0.0, 0.0)
        turn = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
        inner = types["geometry_msgs/msg/Transform"](move, turn)
        edge = types["geometry_msgs/msg/TransformStamped"](header(stamp, "map"), "optical", inner)
        add("/tf", types["tf2_msgs/msg/TFMessage"]([edge]), stamp)
        if not ros1:
            file.write(struct.pack("<BQ", 0x80, HOLE))  # a record of a kind that readers skip
        file.seek(HOLE, 1)
    writer.close()
    return path


def run(code: str, *arguments: object) -> tuple[float, float]:
    """(seconds, peak memory in MiB) of a Python process."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, float(done.stderr.split()[-1])


def main() -> None:
    kinds = sys.argv[1:] or ["ros1", "mcap"]
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            path = write(Path(folder), kind)
            took = time.perf_counter() - start
            files = [path] if path.is_file() else list(path.iterdir())
            size = sum(file.stat().st_size for file in files)
            blocks = sum(file.stat().st_blocks * 512 for file in files)
            print(f"{kind}: {size / 1e9:.1f} GB, {blocks / 1e9:.1f} GB of them on disk, written in {took:.0f} s")
            bare, bare_peak = run(IMPORT + PEAK)
            for name, code in (("open", OPEN), ("inspect", INSPECT)):
                seconds, peak = run(code, path, Path(folder) / "page.html")
                print(
                    f"{name:<10}{seconds - bare:8.1f} s {peak:8.0f} MiB at most, {peak - bare_peak:.0f} of them for it"
                )


if __name__ == "__main__":
    main()
