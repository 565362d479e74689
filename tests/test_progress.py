"""How far work is: a bar on a terminal, a plain line now and then elsewhere."""

import pytest

from locus import progress


@pytest.fixture
def seconds(monkeypatch):
    """A clock that is set by hand."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_is_a_plain_line_every_half_minute(capsys, seconds):
    for _ in progress.track(range(100), "features", 100):
        seconds[0] += 1.0
    assert capsys.readouterr().err.splitlines() == [
        "features: 30 of 100, about 70 s left",
        "features: 60 of 100, about 40 s left",
        "features: 90 of 100, about 10 s left",
    ]


def test_quick_or_unwatched_work_prints_nothing(capsys, seconds):
    for show in (True, False):
        for _ in progress.track(range(20), "features", 20, show):
            seconds[0] += 1.0 if show else 100.0
    assert capsys.readouterr() == ("", "")


def test_work_that_goes_on_counts_only_what_was_done_now(capsys, seconds):
    tell = progress.now_and_then(100, before=50)
    seconds[0] += 60.0
    tell(60, "training")
    assert capsys.readouterr().err == "training: 60 of 100, about 4 min left\n"


def test_on_a_terminal_there_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert list(progress.track(range(3), "features", 3)) == [0, 1, 2]
    assert "━" in capsys.readouterr().err
