"""How every reader refuses what it must."""

from pathlib import Path

import pytest

import locus
from locus import cli
from locus.errors import SceneError


def assert_said(scene: Path, sentence: str, monkeypatch, capsys) -> None:
    """The command line says one sentence, exits with 2, and writes nothing."""
    monkeypatch.chdir(scene.parent)
    before = sorted(scene.parent.iterdir())
    assert cli.main(["inspect", str(scene)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert sentence in said
    assert "Traceback" not in said
    assert sorted(scene.parent.iterdir()) == before


def assert_link_refused(scene: Path, file: Path) -> None:
    """A file of a scene that leads out of it is followed only by those who ask for it."""
    outside = scene.parent / file.name
    file.rename(outside)
    file.symlink_to(outside)
    with pytest.raises(SceneError, match="points outside"):
        locus.load_scene(scene)
    assert len(locus.load_scene(scene, allow_outside=True)) > 0
