import socket
import sys
from dataclasses import replace

import numpy as np
import pytest

from locus.cli import main
from locus.errors import LocusError, to_install
from locus.ports import check_free
from locus.viewer.serve import server
from tests.scenes import layouts, room

pytest.importorskip("viser", reason="the extra `viewer` is not installed")


@pytest.fixture
def taken():
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_busy_port_is_one_sentence_before_anything_is_loaded(taken, capsys):
    assert main(["view", "no-scene", "--model", "no-model", "--port", str(taken)]) == 2
    assert f"port {taken} of 127.0.0.1 is in use" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "viser", None)
    layouts.nerfstudio(tmp_path, room.shots(2))
    assert main(["view", str(tmp_path), "--model", "classic"]) == 2
    assert to_install("viewer") in capsys.readouterr().err


def test_two_servers_at_once_each_on_a_free_port_and_both_stop():
    with server("127.0.0.1", 0) as one, server("127.0.0.1", 0) as other:
        ports = {one.get_port(), other.get_port()}
        assert len(ports) == 2
        for port in ports:
            with pytest.raises(LocusError, match="is in use, by another program perhaps"), server("127.0.0.1", port):
                pass
    for port in ports:
        check_free("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])  # the second: an address of nobody
def test_a_host_that_is_not_this_machine_is_named(host):
    with pytest.raises(LocusError, match=f"{host} is no address of this machine"):
        check_free(host, 0)


def test_a_port_out_of_range_is_named():
    with pytest.raises(LocusError, match="from 0 to 65535, not 70000"):
        check_free("127.0.0.1", 70000)


@pytest.fixture
def stopped(monkeypatch):
    """Ctrl-C as soon as the page is served."""

    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("locus.commands.view.time.sleep", stop)


@pytest.mark.usefixtures("stopped")
def test_the_command_serves_until_it_is_stopped(room_folder, cache, capsys):
    assert main(["view", str(room_folder), "--model", "classic", "--port", "0", "--cache", str(cache)]) == 0
    printed = capsys.readouterr().out
    assert "12 frames; a map built for this page from 11 of 12 frames" in printed
    assert "Open http://localhost:" in printed
    assert printed.endswith("stopped\n")


def test_the_page_opens_at_a_frame(viewed):
    from locus.viewer.app import Page

    with server("127.0.0.1", 0) as running:
        page = Page(running, viewed)
        page.canvas.open_at(running, viewed.row(3))
        pose, start = viewed.seen.frame(3).world_from_camera, running.initial_camera
        assert np.allclose(start.position, pose[:3, 3])
        assert np.allclose(start.look_at - start.position, pose[:3, 2])


@pytest.mark.usefixtures("stopped")
def test_the_command_takes_a_frame(room_folder, cache, capsys):
    words = ["--model", "classic", "--port", "0", "--cache", str(cache)]
    assert main(["view", f"{room_folder}:000003", *words]) == 0
    assert "12 frames" in capsys.readouterr().out
    assert main(["view", f"{room_folder}:30", *words]) == 2
    assert "has no frame '30'" in capsys.readouterr().err


@pytest.mark.usefixtures("stopped")
def test_a_scene_that_no_map_can_be_made_of_is_served_without_one(tmp_path, cache, capsys):
    layouts.nerfstudio(tmp_path, room.shots(1))
    assert main(["view", str(tmp_path), "--model", "classic", "--port", "0", "--cache", str(cache)]) == 0
    printed = capsys.readouterr().out
    assert "1 frames; no map, so no landmarks and nothing to localize in: no spot of" in printed
    assert "Open http://localhost:" in printed


@pytest.mark.usefixtures("stopped")
def test_a_map_by_another_name_is_shown_with_a_warning(room_folder, viewed, cache, tmp_path, capsys):
    viewed.model.save_pretrained(tmp_path / "model")
    replace(viewed.world, environments=("first",)).save(tmp_path / "map")
    words = ["view", str(room_folder), "--model", str(tmp_path / "model"), "--map", str(tmp_path / "map")]
    assert main([*words, "--port", "0", "--cache", str(cache)]) == 0
    assert "Warning: The map given is of first, and this scene is room." in capsys.readouterr().out


def test_a_damaged_map_is_one_sentence(room_folder, tmp_path, capsys):
    (tmp_path / "map.safetensors").write_text("no map")
    assert main(["view", str(room_folder), "--model", "classic", "--map", str(tmp_path), "--port", "0"]) == 2
    assert str(tmp_path) in capsys.readouterr().err
