"""Which device is taken: the one asked for, or one sentence."""

import pytest
import torch

from locus.errors import LocusError
from locus.model import this_device
from locus.model.device import DEVICES


@pytest.fixture
def machine(monkeypatch):
    """A machine with such devices, asked for one of them."""

    def make(there, asked=None):
        for name in DEVICES:
            monkeypatch.setitem(DEVICES, name, lambda name=name: name in there)
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        monkeypatch.delenv("LOCUS_DEVICE", raising=False)
        if asked is not None:
            monkeypatch.setenv("LOCUS_DEVICE", asked)

    return make


@pytest.mark.parametrize(
    ("there", "asked", "taken"),
    [
        (("cpu",), None, "cpu"),
        (("cpu", "mps"), None, "cpu"),
        (("cpu", "mps"), "mps", "mps"),
        (("cpu", "cuda"), None, "cuda:0"),
        (("cpu", "cuda"), "", "cuda:0"),
        (("cpu", "cuda"), "cuda", "cuda:0"),
        (("cpu", "cuda", "mps"), "cpu", "cpu"),
    ],
)
def test_the_device_asked_for_is_taken_else_cuda_else_the_processor(machine, there, asked, taken):
    machine(there, asked)
    assert this_device() == torch.device(taken)


def test_of_several_gpus_each_process_takes_its_own(machine, monkeypatch):
    machine(("cpu", "cuda"))
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert this_device() == torch.device("cuda:2")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("mps", "LOCUS_DEVICE is mps, which PyTorch does not find on this machine; there is cpu, cuda"),
        ("tpu", "LOCUS_DEVICE is tpu, which is no device; it may be cpu, cuda, mps"),
    ],
)
def test_a_device_that_is_not_there_is_one_sentence(machine, asked, says):
    machine(("cpu", "cuda"), asked)
    with pytest.raises(LocusError, match=says):
        this_device()
