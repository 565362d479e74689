"""Files of changes that the page can show, and files that hold none."""

import json

import pytest

from locus.errors import LocusError

pytest.importorskip("viser", reason="the extra `viewer` is not installed")

CHANGE = {"change": "gone", "probability": 0.9, "before": {"points": [[0, 0, 1], [0, 2, 1]]}, "after": None}


def read(path, content):
    from locus.viewer.shown_changes import read_changes

    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_changes(path)


def test_changes_are_read_as_they_were_written(tmp_path):
    (change,) = read(tmp_path / "changes.json", {"changes": [CHANGE]})
    assert change.words == "1. gone (0.90): 0.00 1.00 1.00"
    assert (change.before.shape, change.after.shape) == ((2, 3), (0, 3))
    assert read(tmp_path / "changes.json", {"changes": []}) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[" * 100_000,
        "[]",
        {"changes": 3},
        {"changes": [3]},
        {"changes": [{**CHANGE, "before": None}]},
        {"changes": [{**CHANGE, "before": {"points": [[1, 2]]}}]},
        {"changes": [{**CHANGE, "before": {"points": [[1, 2, "x"]]}}]},
        '{"changes": [{"change": "gone", "probability": 1, "after": null, "before": {"points": [[1, 2, Infinity]]}}]}',
        {"changes": [{**CHANGE, "probability": None}]},
    ],
)
def test_a_file_that_holds_no_changes_is_refused_with_a_sentence(tmp_path, content):
    with pytest.raises(
        LocusError, match=r"(?s)changes\.json does not hold changes \(.*; `locus changes --json` writes them"
    ):
        read(tmp_path / "changes.json", content)
