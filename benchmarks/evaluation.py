"""What evaluation costs: the exact ranking of many pairs, in time and memory.

    python benchmarks/evaluation.py [--pairs 4e8]

Random features, and points of which about one pair in a hundred is right, as in batches of real scenes (what ranking
costs grows with them); both ranked lists (all pairs, cross-view), and every landmark's AP in both. The memory is the
most that the process held beyond what it held before; sorted whole, the scores alone would take four bytes a pair.
"""

import argparse
import resource
import time

import torch
import torch.nn.functional as F

from locus.objective import ExactRanking

SIDE = 1.35  # metres of the cube the points fill: a ball of 0.2 m is 1.4 % of it, and less at its walls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=float, default=4e8)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    count = int(arguments.pairs**0.5)
    random = torch.Generator().manual_seed(0)
    positions = SIDE * torch.rand(count, 3, generator=random)
    features = F.normalize(torch.randn(count, 64, generator=random), dim=-1)
    geometry = (positions, torch.zeros(count, dtype=torch.int64), torch.arange(count) // 400, torch.arange(count))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, worked = time.perf_counter(), time.process_time()
    found = {}
    for name, exclude_same_frame in (("all pairs", False), ("cross-view", True)):
        exact = ExactRanking(0.2, 50.0, exclude_same_frame)
        found[name] = exact(features, *geometry)
        exact.per_landmark(features, *geometry)
    wall, cpu = time.perf_counter() - began, time.process_time() - worked
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
    for name, ranked in found.items():
        pairs = len(ranked.above) + ranked.negatives
        print(f"{name}: {pairs:.2e} pairs, {ranked.chance:.2%} of them right, AP {ranked.average_precision:.5f}")
    whole = 4 * count**2 / 2**20
    print(f"{wall:.0f} s ({cpu:.0f} s of processor), {more:.0f} MiB more; sorted whole: {whole:.0f} MiB and more")


if __name__ == "__main__":
    main()
