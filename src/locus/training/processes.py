"""One run in several processes, under torchrun: each takes its share of every batch; the ranking is of all."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

from locus.model import this_device


@dataclass(frozen=True)
class Processes:
    """How many processes share the run, and which this is."""

    rank: int = 0
    count: int = 1
    group: dist.ProcessGroup | None = None

    @classmethod
    def of_torchrun(cls) -> "Processes":
        """The processes torchrun started, if it did: NCCL where every one has a CUDA GPU, gloo elsewhere."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        cuda = (device := this_device()).type == "cuda"
        if cuda:
            torch.cuda.set_device(device)
        # The others wait for the first while it fills the cache and validates.
        dist.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(hours=12))
        return cls(dist.get_rank(), dist.get_world_size(), dist.group.WORLD)

    @property
    def first(self) -> bool:
        return self.rank == 0

    def wait(self) -> None:
        if self.group is not None:
            dist.barrier(self.group)

    def any(self, here: bool) -> bool:
        """Whether it is so in any process."""
        if self.group is None:
            return here
        flag = torch.tensor(int(here), device="cuda" if dist.get_backend(self.group) == "nccl" else "cpu")
        dist.all_reduce(flag, group=self.group)
        return bool(flag)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Each process has its part of the gradient of one value: the whole is their sum."""
        if self.group is None:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad, group=self.group)

    def close(self) -> None:
        if self.group is not None:
            dist.destroy_process_group()
