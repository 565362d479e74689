"""What the service answers a second on loopback, beside its network alone, and that the answers are right.

    python benchmarks/serve.py MAP SCENE [--model NAME] [--requests 2000] [--clients 1 8 32] [--kinds bare points]

Frames of the scene, as JPEG, go to `locus serve` by so many clients at once, each of which asks again when it has its
answer; the requests are shared evenly by the numbers of clients. First a copy of the map without points, then the map
as it is, or one of them. Two networks run alone in this process, in batches of the same images, before and after each
row; rates are divided by the mean of the two. One is the model's, with its head. The other is the published backbone,
all of its blocks, of which the model runs only the first and learns others. Then more clients ask than may wait.
"""

import argparse
import io
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import numpy as np
import torch
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families
from torch import Tensor, nn

from locus import LandmarkMap, LoCUS, backbones, load_scene
from locus.backbones import Backbone
from locus.geometry import Camera
from locus.model import load
from locus.model.shipped import DEFAULT
from locus.tasks.localize import Location

IMAGES = 8  # that are asked about, and the most that go through the network at once
PASSES = 2


@dataclass(frozen=True)
class Query:
    jpeg: bytes
    pixels: np.ndarray
    camera: Camera

    @classmethod
    def of(cls, image: np.ndarray, camera: Camera) -> "Query":
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "JPEG", quality=95)
        return cls(buffer.getvalue(), np.asarray(Image.open(buffer).convert("RGB")), camera)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("map", type=Path)
    parser.add_argument("scene")
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--kinds", nargs="+", choices=["bare", "points"], default=["bare", "points"])
    arguments = parser.parse_args()
    model, scene, world = load(arguments.model), load_scene(arguments.scene), LandmarkMap.load(arguments.map)
    frames = [scene[index] for index in np.linspace(0, len(scene) - 1, IMAGES).astype(int)]
    queries = [Query.of(frame.image, frame.camera) for frame in frames]
    width, height = frames[0].camera.width, frames[0].camera.height
    print(f"{torch.get_num_threads()} threads, images of {width}×{height}, {model.name}, {len(world)} landmarks\n")
    networks = (model, backbones.load(model.backbone.name))
    with tempfile.TemporaryDirectory() as folder:
        bare = replace(world, points=None)
        maps = {"bare": (bare.save(Path(folder) / "bare"), bare)}
        if world.points is not None:
            maps["points"] = (arguments.map, world)
        for kind in arguments.kinds:
            measure(kind, *maps[kind], networks, queries, arguments)
        turned_away(maps["bare"][0], queries, arguments.model)


def measure(
    kind: str,
    folder: Path,
    world: LandmarkMap,
    networks: tuple[LoCUS, Backbone],
    queries: list[Query],
    arguments: argparse.Namespace,
) -> None:
    model, published = networks
    images = torch.stack([model.prepare(query.pixels) for query in queries])
    expected = [world.localize(model, query.pixels, query.camera) for query in queries]
    share = max(IMAGES, arguments.requests // len(arguments.clients))
    print(f"{kind}: {share} requests a row")
    print(
        f"clients  requests/s  × network  × {published.name}, {published.layer} blocks  "
        "p50 ms  p99 ms  errors  images a batch"
    )
    with served(folder, arguments.model, "--queue", str(max(arguments.clients))) as client:
        asked(client, queries, IMAGES, 2 * IMAGES)  # what is loaded when first used, and memory for whole batches
        start, wrong = metrics(client), 0.0
        for clients in arguments.clients:
            before, alone = metrics(client), [rates(networks, images)]
            begin = time.perf_counter()
            answers = asked(client, queries, clients, share)
            rate = share / (time.perf_counter() - begin)
            alone.append(rates(networks, images))
            network, backbone = np.mean(alone, axis=0)
            now = metrics(client)
            batch = share / (now["locus_batch_images_count"] - before["locus_batch_images_count"])
            errors = sum(answer.status_code != 200 for _, _, answer in answers)
            times = 1e3 * np.percentile([seconds for _, seconds, _ in answers], [50, 99])
            print(
                f"{clients:7} {rate:11.2f} {rate / network:10.2f} {rate / backbone:27.2f} {times[0]:7.0f} "
                f"{times[1]:7.0f} {errors:7} {batch:15.1f}"
            )
            wrong = max([wrong, *(difference(answer.json(), expected[row]) for row, _, answer in answers)])
        end = metrics(client)
    count = share * len(arguments.clients)
    spent = {
        name: 1e3 * (end[f"locus_{name}_seconds_total"] - start[f"locus_{name}_seconds_total"]) / count
        for name in ("network", "answering")
    }
    memory = [at["process_resident_memory_bytes"] / 1e6 for at in (start, end)]
    print(f"a request spends {spent['network']:.0f} ms in the network, {spent['answering']:.0f} ms in what follows it")
    print(f"memory: {memory[0]:.0f} MB after the first {2 * IMAGES} requests, {memory[1]:.0f} MB at the end")
    print(f"largest difference from LandmarkMap.localize, in pose, covariance and probability: {wrong:.1e}\n")


def rates(networks: tuple[nn.Module, ...], images: Tensor) -> list[float]:
    """Images a second of each network."""
    found = []
    with torch.no_grad():
        for network in networks:
            start = time.perf_counter()
            for _ in range(PASSES):
                network(images)
            found.append(PASSES * len(images) / (time.perf_counter() - start))
    return found


@contextmanager
def served(folder: Path, model: str, *options: str) -> Iterator[httpx2.Client]:
    """A client of a service of its own, which is gone at the end."""
    command = [sys.executable, "-u", "-m", "locus", "serve", "--map", str(folder), "--model", model, "--port", "0"]
    limits = ["--seconds", "600", "--batch", str(IMAGES)]
    process = subprocess.Popen([*command, *limits, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = next(found for line in process.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))
        with httpx2.Client(base_url=found[0], timeout=600) as client:
            yield client
    finally:
        process.terminate()
        process.wait(60)


def asked(
    client: httpx2.Client, queries: list[Query], clients: int, count: int
) -> list[tuple[int, float, httpx2.Response]]:
    """The row of each query, how long its answer took, and the answer."""

    def ask(number: int) -> tuple[int, float, httpx2.Response]:
        row = number % len(queries)
        camera = queries[row].camera
        data = {"intrinsics": f'{{"fx": {camera.fx}, "fy": {camera.fy}, "cx": {camera.cx}, "cy": {camera.cy}}}'}
        start = time.perf_counter()
        answer = client.post("/localize", files={"image": queries[row].jpeg}, data=data)
        return row, time.perf_counter() - start, answer

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(ask, range(count)))


def difference(answer: dict, location: Location) -> float:
    """The largest of any number; infinite if one has an answer and the other has none."""
    if answer["environment"] != location.environment:
        return float("inf")
    if location.world_from_camera is None:
        return 0.0
    if (answer["probability"] is None) != (location.probability is None):
        return float("inf")
    names = ("world_from_camera", "covariance", *(["probability"] if location.probability is not None else []))
    return max(float(np.abs(np.subtract(answer[name], getattr(location, name))).max()) for name in names)


def metrics(client: httpx2.Client) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {sample.name: sample.value for family in families for sample in family.samples}


def turned_away(folder: Path, queries: list[Query], model: str) -> None:
    """Four times as many clients as images may wait."""
    with served(folder, model, "--queue", "2") as client:
        answers = [answer for _, _, answer in asked(client, queries, 8, 4 * IMAGES)]
    codes = [answer.status_code for answer in answers]
    told = all("retry-after" in answer.headers for answer in answers if answer.status_code == 503)
    counted = ", ".join(f"{codes.count(code)} × {code}" for code in sorted(set(codes)))
    print(f"8 clients where 2 may wait: {counted}; Retry-After in every 503: {'yes' if told else 'no'}")


if __name__ == "__main__":
    main()
