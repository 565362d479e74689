"""How long scenes take: opening, loading, overlap, inspection. `python benchmarks/scenes.py [SCENE]`.

Without a scene, a small house is generated. Opening is also timed on a made-up scene of 100,000 frames.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import locus
from locus.scenes import Scene, inspect, overlap

FRAMES = 100_000


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def read_everything(scene: Scene) -> None:
    for frame in scene:
        _ = frame.image, frame.depth, frame.camera, frame.world_from_camera


def large_scene(folder: Path) -> Path:
    matrix = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    entry = {"transform_matrix": matrix, "depth_file_path": "depth/0.png"}
    frames = [entry | {"file_path": f"images/{k}.png"} for k in range(FRAMES)]
    (folder / "transforms.json").write_text(json.dumps({"fl_x": 500, "w": 640, "h": 480, "frames": frames}))
    return folder


def main() -> None:
    if len(sys.argv) > 1:
        scene = locus.load_scene(sys.argv[1])
    else:
        from locus import houses

        scene = houses.generate(0, houses.HouseSettings(frames=60))
    image = scene[0].camera
    print(f"{scene.name}: {len(scene)} frames of {image.width}×{image.height}")
    load = timed(lambda: read_everything(scene))
    rows = [("load every frame", load), ("overlap", timed(lambda: overlap(scene)))]
    rows.append(("inspect", timed(lambda: inspect(scene))))
    for name, seconds in rows:
        print(f"{name:<24}{seconds:8.2f} s{seconds / load:8.2f} × loading every frame")
    with tempfile.TemporaryDirectory() as folder:
        large = large_scene(Path(folder))
        parse = timed(lambda: json.loads((large / "transforms.json").read_text()))
        seconds = timed(lambda: locus.load_scene(large))
    print(f"open {FRAMES:,} frames{seconds:12.2f} s{seconds / parse:8.2f} × parsing the JSON alone")


if __name__ == "__main__":
    main()
