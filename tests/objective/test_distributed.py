"""Two processes with half the batch each get the value and the gradient that one gets with all of it."""

import socket

import pytest
import torch
import torch.distributed
import torch.multiprocessing
from torch.nn.functional import normalize

from locus.objective import RetrievalObjective, mean_embeddings

RADII = (0.4, 1.0)
PATCHES = 150  # of the first process; the second has twice as many
LANDMARKS = {  # how many of its own each process brings
    "shared environments": (20, 30),
    "one rank without landmarks": (25, 0),
    "one rank without positives": (20, 30),
    "no positives at all": (20, 30),
}


def whole_batch(case: str):
    generator = torch.Generator().manual_seed(3)
    n = 3 * PATCHES
    positions = 3 * torch.rand(n, 3, generator=generator, dtype=torch.float64)
    features = normalize((2 * positions).sin() @ torch.randn(3, 12, generator=generator, dtype=torch.float64), dim=1)
    environments = torch.randint(2, (n,), generator=generator)
    frames = torch.randint(9, (n,), generator=generator)
    if case == "one rank without positives":
        environments[PATCHES:] = torch.arange(PATCHES, n)  # every patch of the second process is alone
    if case == "no positives at all":
        environments = torch.arange(n)
    first, second = LANDMARKS[case]
    landmarks = torch.cat([torch.arange(first) * 3, PATCHES + torch.arange(second) * 5])
    return features, positions, environments, frames, landmarks


def run(batch, group=None, mean=False):
    features, *rest = batch
    leaf = features.clone().requires_grad_()
    positions, environments, _, landmarks = rest
    if mean:
        both = leaf.expand(2, -1, -1)
        rest.append(mean_embeddings(both, positions, environments, landmarks, RADII, group))
    objective = RetrievalObjective(RADII, 2.5, 0.02, exclude_same_frame=True, group=group)
    values = objective(leaf, *rest)
    (gradient,) = torch.autograd.grad(values @ torch.tensor([1.0, 0.5], dtype=torch.float64), leaf)
    return values.detach(), gradient


def process(rank: int, port: int, results) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for case, counts in LANDMARKS.items():
        *patches, landmarks = whole_batch(case)
        part = slice(0, PATCHES) if rank == 0 else slice(PATCHES, None)
        own = landmarks.split(counts)[rank] - part.start
        for mean in (False, True):
            found = run([*(x[part] for x in patches), own], torch.distributed.group.WORLD, mean)
            results.put((rank, case, mean, *(each.numpy() for each in found)))  # a tensor would go with its process
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def of_two():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    running = torch.multiprocessing.spawn(process, (port, results), nprocs=2, join=False)
    found = {}
    for _ in range(4 * len(LANDMARKS)):
        rank, case, mean, values, gradient = results.get()
        found[rank, case, mean] = torch.from_numpy(values), torch.from_numpy(gradient)
    running.join()
    return found


@pytest.mark.parametrize("mean", [False, True], ids=["own feature", "mean embedding"])
@pytest.mark.parametrize("case", LANDMARKS)
def test_two_processes_reproduce_one(of_two, case, mean):
    values, gradient = run(whole_batch(case), mean=mean)
    for rank in (0, 1):
        torch.testing.assert_close(of_two[rank, case, mean][0], values, rtol=0, atol=1e-6)
    together = torch.cat([of_two[rank, case, mean][1] for rank in (0, 1)])
    assert (together - gradient).norm() <= 1e-6 * max(1, gradient.norm())
    assert bool(values.any()) == (case != "no positives at all")
