"""What a release needs agrees with the one place that has the version."""

import re

import locus
from tests.pages import ROOT


def test_the_version_stands_in_one_place_and_the_others_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == locus.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == locus.__version__
    assert f'"{locus.__version__}"' not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_code_host_runs_what_must_pass_before_a_change_lands():
    steps = re.findall(r"- run: (.*)", (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert ".ci/run" in steps
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {step.removeprefix("make ") for step in steps if step.startswith("make ")} <= set(targets)
