"""The notebook of the tutorial runs, and finds what it says."""

import nbclient
import nbformat
import pytest

from tests.pages import ROOT


@pytest.mark.usefixtures("small_weights")
def test_the_notebook_runs_and_localizes_its_photo(tmp_path):
    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "notebooks are kept without what they printed"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    told = "".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in outputs)
    assert "Sound" in told
    assert "landmarks; here" in told
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
