"""What two workers of a Ray cluster on this machine gain over one, and that the features are the same as without one.

    python benchmarks/cluster.py SCENE [--workers 1 2] [--model NAME]

`locus extract` makes the features of the scene's images: without a cluster, and on clusters that are begun for it, with
so many processors. Everything has one thread, and caches are empty. Beginning a cluster is not counted, connecting is.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import ray
import tyro

from locus.model.shipped import DEFAULT


def main(scene: tyro.conf.Positional[str], workers: tuple[int, ...] = (1, 2), model: str = DEFAULT) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone = folder / "alone.h5"
        print(f"without a cluster: {extracted(scene, model, alone):.1f} s", flush=True)
        for count in workers:
            out = folder / f"{count}.h5"
            ray.init(address="local", num_cpus=count, include_dashboard=False, log_to_driver=False)
            try:
                address = ray.get_runtime_context().gcs_address
                seconds = extracted(scene, model, out, "--cluster", address)
            finally:
                ray.shutdown()
            same = arrays(out) == arrays(alone)
            print(
                f"{count} workers: {seconds:.1f} s; the same bytes of features: {'yes' if same else 'no'}", flush=True
            )


def extracted(scene: str, model: str, out: Path, *options: str) -> float:
    """Seconds of one command."""
    words = ["extract", scene, "--model", model, "--out", str(out), *options]
    threads = {"OMP_NUM_THREADS": "1", "LOCUS_CACHE": str(out.with_suffix(".cache"))}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "locus", *words], check=True, env=os.environ | threads, capture_output=True)
    return time.perf_counter() - start


def arrays(file: Path) -> dict[str, bytes]:
    """What is in the file; where in it HDF5 puts what is its own affair."""
    found = {}
    with h5py.File(file) as opened:
        opened.visititems(
            lambda name, item: found.update({name: item[()].tobytes()} if isinstance(item, h5py.Dataset) else {})
        )
    return found


if __name__ == "__main__":
    tyro.cli(main)
