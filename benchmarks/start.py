"""What comes before the work: how long commands take to start, and localization beside a busy core.

    python benchmarks/start.py MAP SCENE [--model locus-small] [--only start busy]

MAP is a map of the scene (`locus map SCENE --out MAP`). A start is the least of five, in a process of its own, by the
clock and by what the processor did; BROKEN is an image that cannot be read: all is loaded, and nothing computed.
Localization is in a process of its own too, with as many threads as there are cores, by how OpenMP's threads wait:
spinning, as they do by default, or asleep, as LoCUS tells them; alone, and beside a process that keeps one core busy.
Both take turns, five times; the medians of all images are printed.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from tempfile import NamedTemporaryFile
from time import perf_counter

TURNS = 5
COMMANDS = (
    "--help",
    "map --help",
    "train --help",
    "eval --help",
    "eval retrieval --help",
    "localize nowhere --map MAP",
    "localize IMAGE --map nowhere",
    "localize BROKEN --map MAP --model MODEL",
)
POLICIES = {"spinning": {"GOMP_SPINCOUNT": "300000"}, "asleep": {}}  # what libgomp does by itself; what LoCUS sets
LOCALIZE = """
import sys, time
import locus
from locus.model import load
world, model, scene = locus.LandmarkMap.load(sys.argv[1]), load(sys.argv[3]), locus.load_scene(sys.argv[2])
frames = [scene[row] for row in range(0, len(scene), len(scene) // 6)]
for frame in [frames[0], *frames]:
    image, camera = frame.image, frame.camera
    began = time.perf_counter()
    world.localize(model, image, camera)
    print(time.perf_counter() - began)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("map")
    parser.add_argument("scene")
    parser.add_argument("--model", default="locus-small")
    parser.add_argument("--only", nargs="+", choices=("start", "busy"), default=["start", "busy"])
    told = parser.parse_args()
    if "start" in told.only:
        with NamedTemporaryFile(suffix=".png") as broken:
            meant = {"MAP": told.map, "IMAGE": f"{told.scene}:0", "BROKEN": broken.name, "MODEL": told.model}
            starting(meant)
    if "busy" in told.only:
        beside_others([told.map, told.scene, told.model])


def starting(meant: dict[str, str]) -> None:
    print("command | by the clock | computing")
    for line in COMMANDS:
        words = [meant.get(word, word) for word in line.split()]
        seconds, computing = [], []
        for _ in range(TURNS):
            began, used = perf_counter(), os.times()
            subprocess.run([sys.executable, "-m", "locus", *words], capture_output=True, check=False)
            seconds.append(perf_counter() - began)
            now = os.times()
            computing.append(now.children_user + now.children_system - used.children_user - used.children_system)
        print(f"locus {line} | {min(seconds):.2f} s | {min(computing):.2f} s", flush=True)


def beside_others(arguments: Sequence[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    print(f"\none image localized, {os.cpu_count()} threads | {' | '.join(POLICIES)}")
    for beside in ("alone", "beside a busy core"):
        seconds: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        busy = None if beside == "alone" else subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            for _ in range(TURNS):
                for policy, said in POLICIES.items():
                    done = subprocess.run(
                        [sys.executable, "-c", LOCALIZE, *arguments],
                        env=environment | said,
                        capture_output=True,
                        text=True,
                        check=True,
                    )
                    seconds[policy] += map(float, done.stdout.split()[1:])  # the first is slower: all is loaded then
        finally:
            if busy is not None:
                busy.kill()
        print(f"{beside} | {' | '.join(f'{median(each):.2f} s' for each in seconds.values())}", flush=True)


if __name__ == "__main__":
    main()
