"""The README and the docs are true: commands parse, quoted messages are the code's, links lead somewhere."""

import ast
import functools
import importlib
import inspect
import io
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import torch
import tyro

from locus import cli
from locus.objective import RetrievalObjective, retrieval_sets, vectorized_smooth_ap_reference
from locus.training import PRESETS, Settings
from tests.pages import DOCS, FENCED, ROOT, indented_blocks, name_of

# What stands for something else in a command.
MEANT = {"TASK": "retrieval", "X": "1", "Y": "1", "...": ""}
ACTIONS = ("cache", "eval", "segment", "weights")  # commands with sub-commands


def commands(page: Path) -> Iterator[tuple[str, bool]]:
    """Command lines of `locus` on a page; and whether they are whole, or parts named in a sentence."""
    blocks = "\n".join(indented_blocks(page)).replace("\\\n", " ")
    for line in re.findall(r"(?:^|-m |; do |; )(locus [a-z][^;#\n]*)", blocks, re.MULTILINE):
        yield line, " ..." not in line
    for line in re.findall(r"`(locus [a-z][^`]*)`", FENCED.sub("", page.read_text(encoding="utf-8"))):
        yield line, False


def words_of(line: str) -> list[str]:
    """The arguments a command line means: optional ones are given, and SCENE... is one scene."""
    plain = re.sub(r"\$\w+", "0", re.sub(r"\[(--[^\]]*)\]", r"\1", line))
    words = [word.removesuffix("...") or word for word in shlex.split(plain)[1:]]
    return [meant for word in words if (meant := MEANT.get(word, word))]


@functools.cache
def command(verb: str) -> Callable[..., int]:
    """What takes the arguments that a command takes, and does nothing."""
    made = {"train": lambda: cli.train_from("default"), "eval": cli.evaluate_tasks}
    real = made[verb]() if verb in made else cli.COMMANDS[verb]
    return functools.wraps(real)(lambda *arguments, **options: 0)


def parsed(verb: str, arguments: list[str]) -> tuple[int | str | None, str]:
    """The exit code of the real parser, 0 if it likes the arguments, and what it prints."""
    with io.StringIO() as printed, redirect_stdout(printed), redirect_stderr(printed):
        try:
            code = tyro.cli(command(verb), prog=f"locus {verb}", args=arguments)
        except SystemExit as stopped:
            code = stopped.code
        return code, printed.getvalue()


@functools.cache
def options_of(*words: str) -> set[str]:
    code, printed = parsed(words[0], [*words[1:], "--help"])
    assert not code, f"there is no locus {' '.join(words)}"
    return set(re.findall(r"--[a-z0-9-]+", printed))


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_every_command_is_one_that_locus_takes(page):
    for line, whole in commands(page):
        verb, *arguments = words_of(line)
        assert verb in cli.COMMANDS, f"{name_of(page)}: {line}"
        if whole:
            code, printed = parsed(verb, arguments)
            assert not code, f"{name_of(page)}: {line}\n{printed}"
        else:
            action = arguments[:1] if verb in ACTIONS else []
            given = {word for word in arguments if word.startswith("--") and word != "--help"}
            assert given <= options_of(verb, *action), f"{name_of(page)}: {line}"


def test_a_command_that_locus_does_not_take_is_noticed():
    told = {
        "locus map SCENE --model RUN --out MAP": True,
        "locus map SCENE --model RUN --out MAP --depth-unit 1000": False,
        "locus map SCENE --model RUN": False,
        "locus eval TASK SCENE... --methods METHOD... [--fit SCENE...]": True,
        "locus eval taste SCENE --methods METHOD": False,
    }
    for line, taken in told.items():
        verb, *arguments = words_of(line)
        assert (parsed(verb, arguments)[0] == 0) == taken, line
    assert "--depth-scale" in options_of("inspect")
    assert "--min-confidence" not in options_of("train")


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_every_benchmark_named_is_there_and_has_the_options_given(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for file, arguments in re.findall(r"python (benchmarks/\w+\.py)([^`#|\n]*)", text):
        assert (ROOT / file).is_file(), f"{name_of(page)} names {file}"
        source = (ROOT / file).read_text()
        if "settings: Annotated[Settings" in source:  # all of `locus train` are its options, too
            source += inspect.getsource(Settings)
        for option in re.findall(r"--([a-z0-9-]+)", arguments):
            assert re.search(rf'"--{option}"|\b{option.replace("-", "_")}: ', source), f"{file} has no --{option}"


NAME = re.compile(r"(?<![\w/.-])locus(?:\.[A-Za-z_]\w*)+")


def resolved(name: str) -> object:
    """What a dotted name means, where modules on the way are imported as a reader would."""
    found: object = importlib.import_module("locus")
    for depth, part in enumerate(name.split(".")[1:], 2):
        if not hasattr(found, part):
            importlib.import_module(".".join(name.split(".")[:depth]))
        found = getattr(found, part)
    return found


def test_the_objective_is_as_close_to_its_definition_as_the_pages_say():
    (row,) = re.findall(r"^\| ranks: .*", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert "exact" not in row
    stated = float(re.search(r" to (\S+) of its definition", row)[1])
    generator = torch.Generator().manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(400, 16, generator=generator), dim=1)
    place = torch.rand(400, 3, generator=generator), torch.zeros(400, dtype=torch.int64), torch.arange(400) % 8
    landmarks = torch.arange(0, 400, 10)
    positive, universe = retrieval_sets(*place, landmarks, 0.2, 50)
    scores = features.double() @ features[landmarks].double().T
    true = float(vectorized_smooth_ap_reference(scores, positive, universe, 0.01))
    assert abs(float(RetrievalObjective(0.2, 50, 0.01)(features, *place, landmarks)) - true) <= stated


def test_the_preset_official_says_what_it_has_of_the_authors_code_and_what_not():
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^- `--preset official`: (.*?)\n\n", page, re.MULTILINE | re.DOTALL)
    has, has_not = " ".join(told.split()).split("It does not have")
    official = PRESETS["official"]
    assert f"learning rate {official.learning_rate:.0e}".replace("e-0", "e-") in has
    assert f"{official.landmarks} landmarks" in has
    for quirk in ("first image alone", "a tenth of the patches", "own patch kept in the sums", "scaled by 0.125"):
        assert quirk in has_not


@pytest.mark.parametrize("page", [*DOCS, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_every_name_of_the_package_that_a_page_mentions_is_there(page):
    missing = {}
    for name in sorted(set(NAME.findall(page.read_text(encoding="utf-8")))):
        try:
            resolved(name)
        except (ImportError, AttributeError) as error:
            missing[name] = str(error)
    assert missing == {}


def test_a_name_that_is_not_there_is_noticed():
    assert NAME.findall("see `locus.scenes.inspect(scene)`, ~/.cache/locus, my.locus.ply") == ["locus.scenes.inspect"]
    with pytest.raises(ImportError):
        resolved("locus.scenes.nonsense")


def messages() -> list[str]:
    """Every string of the code, with … for what is filled in."""
    found = []
    for file in (ROOT / "src" / "locus").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(v.value) if isinstance(v, ast.Constant) else "…" for v in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_messages_that_the_troubleshooting_page_quotes_are_in_the_code():
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)
    assert len(quoted) > 40
    known = messages()
    unknown = []
    for message in quoted:
        pieces = [re.escape(piece) for word in message.split("…") if (piece := word.strip(" ()"))]
        if not any(map(re.compile(".*".join(pieces), re.DOTALL).search, known)):
            unknown.append(message)
    assert not unknown, "no message of the code reads so"


@pytest.mark.parametrize("page", [*DOCS, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_the_sites_menu():
    menu = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(menu) == sorted(name_of(page) for page in DOCS if page.name != "README.md")


# Pages that are looked things up in, or that explain; a how-to is read from beginning to end.
REFERENCE = {
    "capture/formats.md",
    "files.md",
    "index.md",
    "lab-notes.md",
    "python.md",
    "reference.md",
    "troubleshooting.md",
}


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_a_page_that_is_read_from_beginning_to_end_is_short(page):
    name = name_of(page)
    if name not in REFERENCE and not name.startswith(("explained/", "results/")):
        assert len(page.read_text(encoding="utf-8").split()) <= (899 if name == "README.md" else 600)
