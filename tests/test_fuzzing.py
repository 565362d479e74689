"""Spoiled examples of every format work, or are one sentence: 300 of them here, 10,000 with `make test-all`."""

import pytest

from tests.fuzzing import fuzz
from tests.fuzzing_examples import EXAMPLES


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_spoiled_input_works_or_is_one_sentence(count):
    found, failures = fuzz(range(count), seed=0)
    assert not failures
    assert found.total() == count >= len(EXAMPLES)
    assert found["works"] > count // 20  # what is spoiled is not all refused at the door
    assert found["refused"] > count // 4
