"""The figures of the pages are those that `make results` kept."""

import json
import re

import pytest
from benchmarks import results

from tests.pages import name_of

TOLD = {
    "title": "Pose",
    "columns": ["AUC@5", "AUC@20", "no pose"],
    "digits": [3, 3, 2],
    "better": ["higher", "higher", "neither"],
    "rows": [
        {"label": "ours", "kind": "measured", "cells": [{"value": 0.25, "low": 0.2, "high": 0.3}, {"value": 0.5}, 0.1]},
        {"label": "theirs", "kind": "measured", "cells": [{"value": 0.26}, {"value": None}, None]},
        {"label": "paper: LoCUS", "kind": "reference", "cells": [0.9, 0.9, 0.9]},
    ],
}


@pytest.mark.parametrize("page", results.PAGES, ids=name_of)
def test_a_page_shows_what_is_kept(page):
    text = page.read_text(encoding="utf-8")
    assert results.filled(text, results.recipes(), results.kept()) == text, "run: python benchmarks/results.py --fill"


def test_every_recipe_is_kept_with_where_it_comes_from_and_stands_on_a_page():
    marks = [mark for page in results.PAGES for _, mark, _ in results.PLACE.findall(page.read_text(encoding="utf-8"))]
    assert set(marks) == set(results.recipes())
    kept, run = results.kept(), {name: each for name, each in results.recipes().items() if "of" not in each}
    assert set(kept) == set(run)
    for name, recipe in run.items():
        assert kept[name]["command"] == recipe["command"], name
        assert re.fullmatch(r"[0-9a-f]{7,}", kept[name]["commit"])
        assert kept[name]["machine"]


def test_columns_and_rows_are_chosen_and_the_best_is_bold():
    recipe = {"command": "", "columns": "AUC|no pose", "rows": "^(?!paper)"}
    page = "<!-- result: pose -->\n<!-- result: end -->\nrest\n"
    result = {"command": "locus eval pose \\\n  --pairs 8", "tables": [TOLD]}
    text = results.filled(page, {"pose": recipe}, {"pose": result})
    lines = text.splitlines()
    assert "    locus eval pose \\" in lines
    assert "        --pairs 8" in lines
    assert "| ours | 0.250 | 0.500 | 0.10 |" in lines
    assert "| theirs | **0.260** | ∞ | – |" in lines
    assert "paper" not in text
    assert "± 0.05" in text
    assert lines[-1] == "rest"
    assert results.filled(text, {"pose": recipe}, {"pose": result}) == text


def test_what_a_new_run_changed_is_said():
    old = {"command": "a", "tables": [TOLD]}
    new = json.loads(json.dumps(old))
    new["tables"][0]["rows"][0]["cells"][0]["value"] = 0.255
    assert results.difference(old, old).startswith("0 of 7 figures changed")
    assert results.difference(old, new) == "1 of 7 figures changed, by at most 0.005"
    assert results.difference(None, new) == "kept"
