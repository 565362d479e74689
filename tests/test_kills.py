"""Commands that are killed and run again end as if nothing had happened."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
HERE = Path(__file__).parents[1]


def kill(kills, jobs):
    words = ["-m", "tests.kills", "--kills", str(kills), "--seed", "1", "--jobs", *jobs]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE / "src"), str(HERE)])}
    done = subprocess.run(
        [sys.executable, *words], cwd=HERE, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all results equal, nothing left" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_few_kills_of_the_quick_commands():
    kill(8, ["extract", "convert", "map", "map --add", "serve"])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_more_kills_of_every_command():
    pytest.importorskip("embreex", reason="the extra `houses` is not installed")
    kill(60, ["extract", "convert", "houses", "train", "map", "map --add", "serve"])
