"""The thread of the network: what it runs together, and that nobody waits for ever."""

import time
from concurrent.futures import CancelledError
from threading import Event

import numpy as np
import pytest
import torch

from locus.model import LoCUS
from locus.serve.batching import Batcher
from tests import networks


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    networks.save("dinov2", folder)
    torch.manual_seed(0)
    return LoCUS(str(folder), head="linear", dimension=16, radii=(0.2, 0.6))


@pytest.fixture
def batches():
    return []


@pytest.fixture
def batcher(network, batches):
    running = Batcher(network, batch=4, gather=0.2, observe=lambda images, seconds: batches.append(images))
    yield running
    running.close()
    assert not running.alive


def images(count, size=(56, 70), seed=0):
    random = np.random.default_rng(seed)
    return [random.integers(0, 256, (*size, 3), dtype=np.uint8) for _ in range(count)]


def test_images_that_wait_go_through_the_network_together_and_get_their_own_features(batcher, network, batches):
    given = images(6)
    answers = [batcher.submit(network.prepare(image)) for image in given]
    for image, answer in zip(given, answers, strict=True):
        assert torch.allclose(answer.result(10), network.features(image), atol=1e-5)
    assert batches == [4, 2]


def test_only_images_of_one_size_go_together(batcher, network, batches):
    given = [image for pair in zip(images(2), images(2, (70, 56)), strict=True) for image in pair]
    answers = [batcher.submit(network.prepare(image)) for image in given]
    for image, answer in zip(given, answers, strict=True):
        assert torch.allclose(answer.result(10), network.features(image), atol=1e-5)
    assert batches == [2, 2]


def test_one_image_alone_waits_no_longer_than_it_must(batcher, network):
    start = time.monotonic()
    batcher.submit(network.prepare(images(1)[0])).result(10)
    assert 0.2 <= time.monotonic() - start < 5


def test_what_is_cancelled_before_its_turn_is_not_run(batcher, network, batches):
    first, second = (batcher.submit(network.prepare(image)) for image in images(2))
    assert second.cancel()
    first.result(10)
    with pytest.raises(CancelledError):
        second.result(10)
    assert batches == [1]


def test_an_error_reaches_all_who_wait_and_the_thread_goes_on(batcher, network, monkeypatch):
    prepared = [network.prepare(image) for image in images(2)]

    def broken(images):
        raise ValueError("out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(network, "forward", broken)
        answers = [batcher.submit(each) for each in prepared]
        for answer in answers:
            with pytest.raises(ValueError, match="out of memory"):
                answer.result(10)
    assert batcher.submit(prepared[0]).result(10).shape[0] == 2
    assert batcher.alive


def test_closing_answers_what_waits_and_takes_nothing_more(network, monkeypatch):
    going, real = Event(), network.forward

    def slow(images):
        going.wait(10)
        return real(images)

    monkeypatch.setattr(network, "forward", slow)
    batcher = Batcher(network, batch=1, gather=0)
    answers = [batcher.submit(network.prepare(image)) for image in images(3)]
    going.set()
    batcher.close()
    assert all(answer.done() for answer in answers)
    with pytest.raises(RuntimeError, match="was stopped"):
        batcher.submit(network.prepare(images(1)[0]))
