"""Strangers at the page's door: other web pages, and visitors who send too much, by a real client."""

import time

import numpy as np
import pytest

from locus.viewer import strangers
from locus.viewer.serve import server
from locus.viewer.strangers import AT_ONCE, MESSAGE, UPLOAD, is_own

viser = pytest.importorskip("viser", reason="the extra `viewer` is not installed")
msgspec = pytest.importorskip("msgspec")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")

PROTOCOL = [f"viser-v{viser.__version__}"]


@pytest.fixture
def running():
    with server("127.0.0.1", 0) as running:
        yield running


def connect(running, origin=None, host="127.0.0.1", **options):
    port = running.get_port()
    headers = {"Host": f"{host}:{port}"} if host != "127.0.0.1" else {}
    address = f"ws://127.0.0.1:{port}"
    return client.connect(
        address, origin=origin, subprotocols=PROTOCOL, additional_headers=headers, compression=None, **options
    )


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "https://localhost.evil.example", "null", "http://127.0.0.1:1", "http://[", "file://"],
)
def test_another_web_page_is_refused(running, origin):
    with pytest.raises(exceptions.InvalidStatus) as refused:
        connect(running, origin)
    assert refused.value.response.status_code == 403


def test_the_page_itself_and_programs_without_a_page_are_let_in(running):
    port = running.get_port()
    for origin in (None, f"http://127.0.0.1:{port}"):
        with connect(running, origin) as socket:
            assert socket.recv(timeout=30)


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        ("http://localhost:8080", "localhost:8080", True),
        ("http://192.168.1.7:8080", "192.168.1.7:8080", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("https://robot:8080", "robot:8080", True),
        ("http://evil.example:8080", "evil.example:8080", False),  # a name that was made to lead to this machine
        ("http://evil.example:8080", "localhost:8080", False),
        ("http://localhost:8081", "localhost:8080", False),
        ("ftp://localhost:8080", "localhost:8080", False),
    ],
)
def test_a_page_is_our_own_if_its_name_can_be_nobody_elses(origin, host, own):
    assert is_own([origin], [host], "robot") == own
    assert not is_own([origin, origin], [host], "robot")


def test_too_many_visitors_are_refused(running, monkeypatch):
    monkeypatch.setattr(strangers, "VISITORS", 2)
    with connect(running) as one, connect(running) as other:
        assert one.recv(timeout=30)
        assert other.recv(timeout=30)
        with pytest.raises(exceptions.InvalidStatus) as refused:
            connect(running)
        assert refused.value.response.status_code == 503
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with connect(running) as socket:
                assert socket.recv(timeout=30)
                return
        except exceptions.InvalidStatus:  # the server has not noticed yet that they are gone
            time.sleep(0.05)
    pytest.fail("nobody is let in any more")


def test_a_message_that_is_too_long_ends_the_connection(running):
    with connect(running, max_size=None) as socket:
        socket.send(bytes(MESSAGE + 1))
        with pytest.raises(exceptions.ConnectionClosedError):
            list(socket)  # whatever it says until it ends
        assert socket.close_code == 1009


@pytest.fixture
def button(running):
    return running.gui.add_upload_button("Localize an image", mime_type="image/*")


def send(socket, **message):
    socket.send(msgspec.msgpack.encode(message))


def start(socket, button, name, size, parts):
    send(
        socket,
        type="FileTransferStartUpload",
        source_component_uuid=button._impl.uuid,
        transfer_uuid=name,
        filename=name,
        mime_type="image/png",
        part_count=parts,
        size_bytes=size,
    )


def part(socket, button, name, index, content):
    place = {"source_component_uuid": button._impl.uuid, "transfer_uuid": name, "part_index": index}
    send(socket, type="FileTransferPart", content=content, **place)


def upload(socket, button, name, content):
    pieces = [content[place : place + 2**19] for place in range(0, len(content), 2**19)]
    start(socket, button, name, len(content), len(pieces))
    for index, piece in enumerate(pieces):
        part(socket, button, name, index, piece)


def wait(condition):
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_an_image_arrives_and_one_that_is_too_large_does_not(running, button):
    content = np.random.default_rng(0).bytes(3 * 2**19 + 5)
    with connect(running) as socket:
        start(socket, button, "huge", UPLOAD + 1, 200)
        part(socket, button, "huge", 0, bytes(100))
        start(socket, button, "crumbs", 1000, 1000)
        upload(socket, button, "fine", content)
        wait(lambda: button.value.name == "fine")
    assert button.value.content == content
    assert not running.gui._current_file_upload_states


def test_uploads_at_once_and_bytes_beyond_what_was_announced_are_not_kept(running, button):
    under_way = running.gui._current_file_upload_states
    with connect(running) as socket:
        for number in range(10 * AT_ONCE):
            start(socket, button, f"open {number}", UPLOAD, 200)
        wait(lambda: len(under_way) == AT_ONCE)
        for index in range(200):
            part(socket, button, "open 0", index, bytes(2**19))
        wait(lambda: "open 0" not in under_way)
        held = sum(len(content) for state in under_way.values() for content in state["parts"].values())
        assert held <= AT_ONCE * UPLOAD
        assert len(under_way) == AT_ONCE - 1
    with connect(running) as socket:
        wait(lambda: len(running._websock_server._client_state_from_id) == 1)
        upload(socket, button, "later", b"the others are gone")
        wait(lambda: button.value.name == "later")


def test_nobody_can_have_the_page_published_elsewhere(running, monkeypatch):
    monkeypatch.setattr(type(running), "request_share_url", lambda self: pytest.fail("it was asked for"))
    from viser import _messages

    assert _messages.ShareUrlRequest not in running._websock_server._incoming_handlers
