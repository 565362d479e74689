"""How fast, how accurate and how small the objective is: one command, one table, ratios from one run.

    python benchmarks/objective.py                              # the table
    python benchmarks/objective.py --figures docs/figures       # and the two plots of docs/objective.md
    python benchmarks/objective.py --threads 1                  # where other programs share the processor's cores

Times are medians of alternating runs, so that whatever else the machine does falls on both sides of a ratio.
Memory is the peak of a fresh process, less what it held before the call.
"""

import argparse
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from locus.objective import RetrievalObjective, smooth_ap, vectorized_smooth_ap_reference
from locus.objective.curves import Grid
from locus.objective.smooth_ap import BINS_PER_TAU, SmoothAPOfLists

TAU = 0.01
PATCHES, LANDMARKS, CHANNELS = 16 * 1280, 512, 64


def make_batch(n: int, m: int, side: float = 10.0) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Patches spread evenly over a storey of 10 x 10 x 3 m; features that know, badly, where they are."""
    generator = torch.Generator().manual_seed(0)
    positions = torch.rand(n, 3, generator=generator) * torch.tensor([side, side, 3.0])
    waves = (positions @ torch.randn(3, CHANNELS, generator=generator)).sin()
    features = normalize(waves + 0.7 * torch.randn(n, CHANNELS, generator=generator), dim=1)
    frames = torch.arange(n) * 16 // n
    landmarks = torch.randperm(n, generator=generator)[:m]
    return features, positions, torch.zeros(n, dtype=torch.long), frames, landmarks


def make_ranking(n: int, m: int, positives: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    positive = torch.zeros(n * m, dtype=torch.bool)
    positive[torch.randperm(n * m, generator=generator)[:positives]] = True
    positive = positive.view(n, m)
    scores = (0.15 * torch.randn(n, m, generator=generator) + 0.15 * positive).clamp(-1, 1)
    return scores, positive, torch.ones_like(positive)


def medians(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median time of each, run in turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if repeat:  # the first turn warms up
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def there_and_back(objective: Callable[..., Tensor], leaf: Tensor, *rest: object) -> Callable[[], object]:
    def run() -> None:
        values = objective(leaf.detach().requires_grad_(), *rest)
        values.sum().backward()

    return run


def bare_products(features: Tensor, positions: Tensor, landmarks: Tensor) -> Callable[[], object]:
    """Scores and distances, and the two products of the gradient: what (b) cannot do without."""
    embeddings, centres = features[landmarks].clone(), positions[landmarks].clone()

    def run() -> None:
        scores = features @ embeddings.T
        torch.cdist(positions, centres)
        torch.mm(scores, embeddings)
        torch.mm(scores.T, features)

    return run


def all_pairs(n: int) -> None:
    features, *patches, _ = make_batch(n, 1)
    there_and_back(RetrievalObjective(0.2, 50.0, TAU), features, *patches, torch.arange(n))()


def labelled(k: int) -> tuple[Tensor, Tensor, Tensor]:
    """k labels with k items each; every item retrieves those of its label."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(k).repeat_interleave(k)
    features = normalize(torch.randn(k, CHANNELS, generator=generator)[labels], dim=1)
    features = normalize(features + 0.3 * torch.randn(k * k, CHANNELS, generator=generator), dim=1)
    return features, labels, labels[:, None] == labels


def metric_learning(k: int) -> Tensor:
    from pytorch_metric_learning.losses import SmoothAPLoss

    features, labels, _ = labelled(k)
    leaf = features.requires_grad_()
    value = 1 - SmoothAPLoss(temperature=TAU)(leaf, labels)
    value.backward()
    return value.detach()


def ours_on_labels(k: int) -> Tensor:
    features, _, same = labelled(k)
    leaf = features.requires_grad_()
    value = smooth_ap(leaf @ leaf.T, same, torch.ones_like(same), TAU).mean()
    value.backward()
    return value.detach()


def _measure(
    task: Callable[[int], object], size: int, small: int, threads: int, answer: multiprocessing.SimpleQueue
) -> None:
    torch.set_num_threads(threads)
    task(small)  # libraries load, threads start
    before = peak_memory()
    start = time.perf_counter()
    task(size)
    taken = time.perf_counter() - start
    answer.put((taken, peak_memory() - before))


def peak_memory() -> float:
    """Of this process so far, in GiB (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20


def in_fresh_process(task: Callable[[int], object], size: int, small: int) -> tuple[float, float]:
    """Seconds, and the growth of the process's peak memory in GiB."""
    context = multiprocessing.get_context("spawn")
    answer = context.SimpleQueue()
    process = context.Process(target=_measure, args=(task, size, small, torch.get_num_threads(), answer))
    process.start()
    result = answer.get()
    process.join()
    return result


def errors_by_bin_width() -> list[tuple[float, float, float]]:
    """Bins to each tau, error of the value, and of the gradient, against the definition in float64."""
    scores, positive, universe = make_ranking(600, 20, 300)
    true_leaf = scores.double().requires_grad_()
    true_value = vectorized_smooth_ap_reference(true_leaf, positive, universe, TAU)
    (true_gradient,) = torch.autograd.grad(true_value, true_leaf)
    rows = []
    for bins_per_tau in (1, 2, 4, 8, 16, 32, 64, 128):
        grid = Grid.covering(float(scores.min()), float(scores.max()), TAU, points=4, bins_per_tau=bins_per_tau)
        leaf = scores.double().requires_grad_()
        value = SmoothAPOfLists.apply(leaf.view(-1), positive.view(-1), torch.tensor([scores.numel()]), grid)[0]
        (gradient,) = torch.autograd.grad(value, leaf)
        error = (gradient - true_gradient).norm() / true_gradient.norm()
        rows.append((bins_per_tau, abs(value.item() - true_value.item()), error.item()))
    return rows


def times_by_pairs() -> list[tuple[int, float]]:
    """Pairs, and seconds for value and gradient; every pair is in the universe."""
    rows = []
    for n, m in ((1280, 80), (4096, 256), (20480, 512), (20480, 4096), (20480, 20480)):
        features, *patches, landmarks = make_batch(n, m)
        run = there_and_back(RetrievalObjective(0.2, math.inf, TAU), features, *patches, landmarks)
        rows.append((n * m, medians({"ours": run}, repeats=9 if n * m < 10**8 else 1)["ours"]))
    return rows


def slope(rows: list[tuple[int, float]]) -> float:
    """Of the straight line through the logarithms."""
    return statistics.linear_regression(*([math.log(v) for v in column] for column in zip(*rows, strict=True))).slope


def draw(
    folder: Path, errors: list[tuple[float, float, float]], times: list[tuple[int, float]], reference: float
) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "locus"}
    )
    folder.mkdir(parents=True, exist_ok=True)
    bins, of_value, of_gradient = zip(*errors, strict=True)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.loglog(bins, of_gradient, "o-", color="tab:orange", label="gradient, relative")
    axes.loglog(bins, of_value, "s-", color="tab:blue", label="value, absolute")
    axes.axvline(BINS_PER_TAU, color="0.6", linestyle=":")
    axes.text(BINS_PER_TAU * 1.06, max(of_gradient), "used", color="0.4", va="top")
    axes.set_xticks(bins, ["τ", *(f"τ/{b}" for b in bins[1:])])
    axes.minorticks_off()
    axes.set(xlabel="bin width", ylabel="error against the definition in float64")
    axes.legend(frameon=False)
    figure.savefig(folder / "objective-error.svg", metadata={"Date": None})

    pairs, seconds = zip(*times, strict=True)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.loglog(pairs, seconds, "o-", color="tab:blue", label="ours, every pair")
    axes.loglog([131_072], [reference], "D", color="tab:red", label="definition, 4,000 positives")
    linear = [seconds[2] * p / pairs[2] for p in pairs]
    axes.loglog(pairs, linear, ":", color="0.6", label="proportional to pairs")
    axes.set(xlabel="pairs (patches × landmarks)", ylabel="seconds, value and gradient")
    axes.legend(frameon=False)
    figure.savefig(folder / "objective-time.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, help="folder to draw the plots in")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads for both sides")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, CPU, float32, tau = {TAU}\n")
    rows: list[tuple[str, str, str, bool]] = []

    def report(what: str, found: str, target: str, holds: bool) -> None:
        rows.append((what, found, target, holds))
        print(f"| {what} | {found} | {target} | {'yes' if holds else 'NO'} |", flush=True)

    print("| what | found | target | holds |\n|---|---|---|---|")
    ranking = make_ranking(2048, 64, 4000)
    one_list = [x.reshape(-1, 1) for x in ranking]  # whose Smooth-AP is the V-Smooth-AP of all pairs
    ours = medians({"ours": there_and_back(smooth_ap, *one_list, TAU)}, 9)["ours"]
    definition = medians({"definition": there_and_back(vectorized_smooth_ap_reference, *ranking, TAU)}, 1)["definition"]
    ratio = definition / ours
    found = f"{definition:.1f} s / {1e3 * ours:.1f} ms = {ratio:.0f} ×"
    report("(a) 131,072 pairs, 4,000 positives: definition / ours", found, "≥ 500 ×", ratio >= 500)

    features, positions, *numbers, landmarks = make_batch(PATCHES, LANDMARKS)
    rest = (positions, *numbers, landmarks)
    runs = {"bare": bare_products(features, positions, landmarks)}
    variants = {
        "κ = 50": (50.0, False),
        "κ = ∞": (math.inf, False),
        "κ = 50, cross-view": (50.0, True),
        "κ = 2.5": (2.5, False),
    }
    for name, (kappa, exclude) in variants.items():
        runs[name] = there_and_back(RetrievalObjective(0.2, kappa, TAU, exclude), features, *rest)
    taken = medians(runs, 15)
    for name in list(variants)[:3]:
        ratio = taken[name] / taken["bare"]
        found = f"{1e3 * taken[name]:.0f} ms / {1e3 * taken['bare']:.0f} ms = {ratio:.2f} ×"
        report(f"(b) 20,480 × 512, {name}: ours / bare products", found, "≤ 3 ×", ratio <= 3)

    seconds, memory = in_fresh_process(all_pairs, PATCHES, 512)
    report("(c) 20,480 × 20,480: peak extra memory", f"{memory:.2f} GiB, {seconds:.1f} s", "≤ 1 GiB", memory <= 1)
    times = times_by_pairs()
    report("(d) slope of time, 1e5 to 4e8 pairs", f"{slope(times):.2f}", "≤ 1.1", slope(times) <= 1.1)
    ratio = taken["κ = ∞"] / taken["κ = 2.5"]
    found = f"{1e3 * taken['κ = ∞']:.0f} ms / {1e3 * taken['κ = 2.5']:.0f} ms = {ratio:.1f} ×"
    report("(e) 10 m scene, κρ = ∞ / κρ = 0.5 m", found, "≥ 3 ×", ratio >= 3)

    k = 24
    theirs, ours_there = in_fresh_process(metric_learning, k, 4), in_fresh_process(ours_on_labels, k, 4)
    difference = abs(metric_learning(10).item() - ours_on_labels(10).item())
    found = f"{theirs[0]:.2f} s, {theirs[1]:.2f} GiB / {ours_there[0]:.2f} s, {ours_there[1]:.2f} GiB"
    what = f"(f) {k * k} items, {k} labels: pytorch-metric-learning / ours"
    report(what, f"{found}; values differ by {difference:.0e}", "–", difference < 1e-5)

    errors = errors_by_bin_width()
    _, of_value, of_gradient = next(row for row in errors if row[0] == BINS_PER_TAU)
    report("error of the value", f"{of_value:.0e}", "≤ 1e-5", of_value <= 1e-5)
    report("error of the gradient, relative", f"{of_gradient:.0e}", "≤ 1e-4", of_gradient <= 1e-4)
    print("\n| pairs | seconds |\n|---|---|")
    for pairs, seconds in times:
        print(f"| {pairs:,} | {seconds:.4f} |")
    if arguments.figures:
        draw(arguments.figures, errors, times, definition)


if __name__ == "__main__":
    main()
