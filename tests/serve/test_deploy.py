"""The container's files name things that are there: paths, extras, commands, ports, a user who is not root."""

import json
import re
import shlex

import pytest
import tomllib
import yaml

from tests.pages import ROOT
from tests.test_docs import parsed

DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def steps():
    """The instructions of the Dockerfile, in order."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def told(steps, kind):
    return [rest for name, rest in steps if name == kind]


def test_what_is_copied_is_there_and_enough_to_build_the_package(steps):
    copied = {word for rest in told(steps, "COPY") for word in rest.split()[:-1]}
    for path in copied:
        assert (ROOT / path).exists(), path
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml", "constraints.txt"}
    assert (
        needed | {path.split("/")[0] for path in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
        <= copied
    )


def test_what_is_installed_is_an_extra_of_the_project(steps):
    (pip,) = [words for rest in told(steps, "RUN") if "pip" in (words := shlex.split(rest))]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = re.fullmatch(r"\.\[(.*)\]", pip[-1])[1].split(",")
    assert set(wanted) <= set(extras)
    assert "serve" in wanted


def test_what_is_run_is_a_command_and_not_by_root(steps):
    names = [name for name, _ in steps]
    user = names.index("USER")
    assert steps[user][1] != "root"
    assert f" {steps[user][1]}" in told(steps, "RUN")[0]
    (command,) = told(steps, "CMD")
    runs = [shlex.split(rest) for rest in told(steps, "RUN")] + [json.loads(command)]
    of_locus = [words for words in runs if words[0] == "locus"]
    assert len(of_locus) == 2
    for words in of_locus:
        code, printed = parsed(words[1], words[2:])
        assert not code, printed
    assert all(user < number for number, (_, rest) in enumerate(steps) if rest.startswith('["locus"'))


def test_the_port_is_the_same_everywhere_and_only_this_machine_reaches_it(steps):
    (command,), (port,) = told(steps, "CMD"), told(steps, "EXPOSE")
    words = json.loads(command)
    assert words[words.index("--port") + 1] == port
    assert f"127.0.0.1:{port}/health" in told(steps, "HEALTHCHECK")[0]
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["locus"]
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    folder = words[words.index("--map") + 1]
    assert [volume.rsplit(":", 2)[1:] for volume in service["volumes"]] == [[folder, "ro"]]
    assert "LOCUS_API_KEY" in service["environment"]
