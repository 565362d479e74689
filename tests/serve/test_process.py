"""`locus serve` as a program: it stops when told to, reads maps again, and keeps to its limits."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import numpy as np
import pytest
import uvicorn

from locus.cli import main
from locus.errors import to_install
from locus.serve import running
from tests.serve.conftest import INTRINSICS, png

FORM = {"intrinsics": json.dumps(INTRINSICS | {"width": 80, "height": 60})}


@contextmanager
def served(folder, *options, **environment):
    """The service's process and a client for it; it is gone at the end."""
    command = [sys.executable, "-u", "-m", "locus", "serve", "--map", str(folder), "--model", "classic", "--port", "0"]
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment
    )
    try:
        lines = iter(process.stdout.readline, "")
        url = next((found[0] for line in lines if (found := re.search(r"http://[\d.]+:\d+", line))), None)
        assert url, process.stderr.read()
        with httpx2.Client(base_url=url, timeout=60) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)
    return found


def resident(process):
    """Megabytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1]) / 1024


@pytest.fixture(scope="module")
def large():
    """An image that takes the network a while."""
    return png(np.random.default_rng(0).integers(0, 256, (1200, 1600, 3), dtype=np.uint8))


def test_it_answers_what_it_has_begun_and_stops_when_told_to(map_folder, shots, large):
    with served(map_folder) as (process, client), ThreadPoolExecutor(4) as pool:
        first = client.post("/localize", files={"image": png(shots[0].image)}, data=FORM)
        assert first.json()["environment"] == "room"
        asked = [pool.submit(client.post, "/localize", files={"image": large}, data=FORM) for _ in range(4)]
        until(lambda: client.get("/health").json()["waiting"] == 4)
        process.send_signal(signal.SIGTERM)
        assert [each.result().status_code for each in asked] == [200] * 4
        assert process.wait(20) == 0
        assert process.stdout.read().endswith("stopped\n")
        assert "Traceback" not in process.stderr.read()
        with pytest.raises(httpx2.ConnectError):
            client.get("/health")


def test_ctrl_c_stops_it_too(map_folder):
    with served(map_folder) as (process, client):
        assert client.get("/health").status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_a_changed_map_is_served_without_a_pause(map_folder, world, shots):
    with served(map_folder) as (process, client):
        answers, done = [], threading.Event()

        def ask():
            while not done.is_set():
                answers.append(client.post("/localize", files={"image": png(shots[0].image)}, data=FORM))

        with ThreadPoolExecutor(2) as pool:
            asking = [pool.submit(ask) for _ in range(2)]
            try:
                replace(world, environments=("hall",)).save(map_folder)
                until(lambda: client.get("/maps").json()["maps"][0]["environments"] == ["hall"])
                (map_folder / "map.safetensors").write_bytes(b"half a map")
                problem = until(lambda: client.get("/health").json()["problem"])
                until(lambda: answers[-1].json()["environment"] == "hall")
            finally:
                done.set()
            [each.result() for each in asking]
        assert "the map before it is served" in problem
        assert "build the map again" in problem
        assert {answer.status_code for answer in answers} == {200}
        named = [answer.json()["environment"] for answer in answers]
        assert set(named) == {"room", "hall"}
        process.terminate()
        process.wait(20)
        assert "A map has changed: the new one is served" in (said := process.stderr.read())
        assert "A map has changed: the map before it is served" in said


def test_more_than_may_wait_are_turned_away_and_the_rest_is_answered(map_folder, large):
    with served(map_folder, "--queue", "3") as (_, client), ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(client.post, "/localize", files={"image": large}, data=FORM) for _ in range(12)]
        answers = [each.result() for each in asked]
        codes = [answer.status_code for answer in answers]
        assert set(codes) == {200, 503}
        assert codes.count(200) >= 3
        for answer in answers:
            if answer.status_code == 503:
                assert int(answer.headers["retry-after"]) >= 1
                assert "3 may; try again in" in answer.json()["detail"]
        assert client.get("/health").json()["waiting"] == 0


def test_uploads_that_are_too_large_or_too_slow_are_cut_off(map_folder, shots):
    with served(map_folder, "--seconds", "2") as (process, client):
        before = resident(process)
        answer = client.post("/localize", files={"image": bytes(100_000_000)}, data=FORM)
        assert (answer.status_code, answer.json()["detail"]) == (413, "the request is larger than 32 MB")
        assert resident(process) - before < 50
        host, port = client.base_url.host, client.base_url.port
        with socket.create_connection((host, port), timeout=20) as slow:
            head = f"POST /localize HTTP/1.1\r\nHost: {host}\r\nContent-Type: multipart/form-data; boundary=x\r\n"
            slow.sendall(f"{head}Content-Length: 1000\r\n\r\n--x\r\n".encode())
            start, said = time.monotonic(), b""
            while piece := slow.recv(4096):
                said += piece
            assert 1.5 < time.monotonic() - start < 10
        assert said.startswith(b"HTTP/1.1 408")
        assert b"the request was not all here after 2 seconds" in said
        assert client.post("/localize", files={"image": png(shots[0].image)}, data=FORM).status_code == 200


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHos"])
def test_headers_that_do_not_come_end_the_connection(monkeypatch, sent):
    async def app(scope, receive, send):
        await asyncio.sleep(0.6)  # an answer that takes longer than headers may
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr(running, "HEADERS", 0.3)
    server = uvicorn.Server(uvicorn.Config(app, http=running.HurriedProtocol, lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            address = taken.getsockname()
            with socket.create_connection(address, timeout=10) as dawdling:
                dawdling.sendall(sent)
                assert dawdling.recv(100) == b""
            with socket.create_connection(address, timeout=10) as quick:
                quick.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
                assert quick.recv(100).startswith(b"HTTP/1.1 204")
        finally:
            server.should_exit = True
            thread.join()


def test_the_key_comes_from_the_environment(map_folder):
    with served(map_folder, LOCUS_API_KEY="open sesame") as (_, client):
        assert client.get("/maps").status_code == 401
        assert client.get("/maps", headers={"Authorization": "Bearer open sesame"}).status_code == 200


def test_what_is_wrong_is_said_before_it_starts(map_folder, tmp_path, monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert main(["serve", "--map", str(map_folder), "--model", "classic", "--port", port]) == 2
    for arguments, sentence in (
        (["--map", str(tmp_path / "nowhere")], "holds no map"),
        (["--map", str(map_folder), "--queue", "0"], "must be positive"),
        (["--map", str(map_folder), "--batch", "0"], "at least one image"),
    ):
        assert main(["serve", *arguments, "--model", "classic", "--port", "0"]) == 2
        assert sentence in " ".join(capsys.readouterr().err.split())
    monkeypatch.setenv("LOCUS_API_KEY", "")
    assert main(["serve", "--map", str(map_folder), "--model", "classic", "--port", "0"]) == 2
    assert "the key is empty" in capsys.readouterr().err
    monkeypatch.delenv("LOCUS_API_KEY")
    monkeypatch.setitem(sys.modules, "locus.serve.endpoints", None)
    assert main(["serve", "--map", str(map_folder), "--port", "0"]) == 2
    assert to_install("serve") in capsys.readouterr().err
