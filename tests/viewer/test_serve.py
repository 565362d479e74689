import socket
import sys

import pytest

from locus.cli import main
from locus.errors import LocusError
from locus.viewer.serve import check_free, server

pytest.importorskip("viser", reason="the extra `viewer` is not installed")


@pytest.fixture
def taken():
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_busy_port_is_one_sentence_before_anything_is_loaded(taken, capsys):
    assert main(["view", "no-scene", "--model", "no-model", "--port", str(taken)]) == 2
    assert f"port {taken} of 127.0.0.1 is in use" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["view", "no-scene", "--model", "no-model"]) == 2
    assert "pip install 'locus-features[viewer]'" in capsys.readouterr().err


def test_two_servers_at_once_each_on_a_free_port_and_both_stop():
    with server("127.0.0.1", 0) as one, server("127.0.0.1", 0) as other:
        ports = {one.get_port(), other.get_port()}
        assert len(ports) == 2
        for port in ports:
            with pytest.raises(LocusError, match="is in use, by another viewer perhaps"), server("127.0.0.1", port):
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


def test_the_command_serves_until_it_is_stopped(room_folder, cache, monkeypatch, capsys):
    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("locus.commands.view.time.sleep", stop)
    assert main(["view", str(room_folder), "--model", "classic", "--port", "0", "--cache", str(cache)]) == 0
    printed = capsys.readouterr().out
    assert "12 frames; a map built for this page from 11 of 12 frames" in printed
    assert "Open http://localhost:" in printed
    assert printed.endswith("stopped\n")
