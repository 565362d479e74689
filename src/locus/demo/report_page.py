"""The demo's page: one HTML file that needs nothing else, every number of it measured in the run it is from."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from locus.demo.drawings import ABOVE, error_curves, plan, training_curves
from locus.demo.finding import CLOSE, Answers, Finding
from locus.demo.stages import program
from locus.evaluation.outcome import Outcome
from locus.evaluation.report import OWN_STYLE, table_html
from locus.evaluation.table import Column, Row, Table
from locus.features.viz import sheet
from locus.scenes.inspection_page import STYLE, figure
from locus.training.watch import duration

if TYPE_CHECKING:
    from locus.demo.pipeline import Results

DEMO_STYLE = """ body { max-width: 1100px; } figure { margin-right: 0; } figcaption { max-width: 900px; }
.cards { display: flex; flex-wrap: wrap; gap: 1em; margin: 1.2em 0; }
.cards div { flex: 1 1 16em; border: 1px solid #ddd; border-radius: 8px; padding: .8em 1em; }
.cards b { display: block; font-size: 1.8em; color: #1f4e79; line-height: 1.3; } .cards small { font-size: .6em; }
.beside { display: flex; flex-wrap: wrap; } .beside svg { flex: 1 1 24em; min-width: 0; }
summary { color: #555; font-size: .9em; cursor: pointer; }
pre { background: #f3f3f3; padding: .8em 1em; white-space: pre-wrap; overflow-wrap: anywhere; }
.done td:last-child { white-space: nowrap; text-align: right; }
"""
COLUMNS = {"AP, cross-view": "in other views", "AP, all pairs": "in all views, its own too"}


def cross_view(outcome: Outcome, label: str) -> float:
    """Average precision in other views, the mean over houses and batches."""
    batches = [batch for part in outcome.of(label) for of in part.measured["radii"].values() for batch in of]
    return float(np.mean([batch["cross-view"]["AP"] for batch in batches]))


def said(finding: Finding) -> str:
    """What localization came to, in a sentence or two."""
    return (
        f"Within {CLOSE[0]:g} m and {CLOSE[1]:g}°: {_share(finding.rgbd)} images with depth, {_share(finding.rgb)} by "
        f"colour alone; {_refused(finding.elsewhere)} of {len(finding.elsewhere)} images of another house are not here."
    )


def _share(answers: Answers) -> str:
    return f"{answers.close} of {len(answers)}"


def _refused(answers: Answers) -> int:
    return len(answers) - answers.found


def render(results: Results) -> str:
    sections = (_head, _colours, _retrieval, _spot, _places, _training, _how)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>LoCUS demo</title><style>{STYLE}{OWN_STYLE}{DEMO_STYLE}</style>"
        + "".join(section(results) for section in sections)
    )


def _head(results: Results) -> str:
    finding, own = results.findings[0], cross_view(results.outcome, results.label)
    untrained = max(cross_view(results.outcome, method.label) for method in results.outcome.methods[:-1])
    cards = {
        f"{own:.2f} <small>untrained: {untrained:.2f}</small>": "how well the same spot is found again in other "
        "views: average precision, where 1 is perfect",
        f"{_share(finding.rgbd)} <small>with depth</small>": "images of a new house placed on its map within "
        f"{CLOSE[0]:g} m and {CLOSE[1]:g}°; by colour alone, {_share(finding.rgb)}",
        f"{_refused(finding.elsewhere)} of {len(finding.elsewhere)}": "images of another house recognised as <i>not "
        f"here</i>; by colour alone, {_refused(finding.elsewhere_rgb)}",
    }
    boxes = "".join(f"<div><b>{number}</b>{words}</div>" for number, words in cards.items())
    trained = (
        f"in generated houses that took no part in training. Training was short, {results.plan.settings.steps} steps, "
        "and figures are what those steps gave; docs/training.md has what more of them bring."
        if results.pretrained is None
        else f"in generated houses, with a model which was not trained here, <code>{escape(results.pretrained)}</code>."
    )
    return f"""<h1>LoCUS: features that know places</h1>
<p>LoCUS gives every patch of an image a <i>feature</i>, {results.model.dimension} numbers that are the same for the
same spot in the world, from wherever one looks at it, and different for every other spot. This page shows what that
is good for. Everything on it was made and measured in the run that wrote it, {trained}</p>
<div class=cards>{boxes}</div>"""


def _colours(results: Results) -> str:
    names = "; ".join(["the images", results.label, results.findings[1].label])
    caption = f"From top to bottom: {names} (the same network, without training). Colours mean the same along a row."
    return f"""<h2>The same thing, the same colour</h2>
<p>Views of one house from different sides, and their features as colours: like features, like colours. Look for a
thing that several views show, and whether it keeps its colour. Well-trained features give every place in a room a
colour of its own; untrained ones give the same colour to all that looks alike.</p>
{figure(sheet(results.colours), caption)}"""


def _retrieval(results: Results) -> str:
    main = results.plan.retrieval.tables(results.outcome)[0]
    names = [column.name for column in main.columns]
    places = [names.index(name) for name in COLUMNS]
    columns = [replace(main.columns[at], name=name) for at, name in zip(places, COLUMNS.values(), strict=True)]
    rows = [replace(row, cells=[row.cells[at] for at in places]) for row in main.rows if row.kind == "measured"]
    table = table_html(Table("Finding the same spot again", columns, rows))
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in main.notes[:-1])
    glow = "".join(figure(picture, caption) for caption, picture in results.glow)
    return f"""{table}
<p class=note>Average precision (AP): for a spot, all patches are ranked by how like its feature theirs are; 1 means
that all patches within {results.plan.retrieval.radii[0]:g} m of it come first. PCA: the untrained network's features,
reduced to so many numbers by principal components, fitted to {results.fitted} other houses; whitened: each component
made equally important.</p><details><summary>Exactly how</summary>{notes}</details>
<p>Below, one spot in the views that show it. The first row has the spot (square) and where it truly is in other views
(dots); each row after it is one of the methods in the table, bright where a patch is like the spot. The best would
glow at the dots and stay dark elsewhere.</p>{glow}"""


def _spot(results: Results) -> str:
    found, spot = results.sheet, results.spot
    rest = len(spot.shown) - 1 - found.showing
    return f"""<h2>One spot, in every view</h2>
<p>The ring marks a spot on a thing of the class <i>{escape(spot.what)}</i>. The other views of the house follow,
best first: the number above each says how similar the best patch is to the spot (1 is the same), and what is similar is
outlined in orange. Whether a view truly shows the spot is known from depth and poses, which were not used to find it.
{found.showing} of the other views do, and {found.first} of these are among the first {found.showing}; something is
outlined in {found.outlined} of them, and in {found.wrong} of the {rest} that do not show it.</p>
{figure(found.picture, f"{results.mapped.name}, the first views of {len(spot.shown)}.")}"""


def _places(results: Results) -> str:
    ours = results.findings[0]
    columns = [
        Column(f"within {CLOSE[0]:g} m and {CLOSE[1]:g}°"),
        Column("median, metres", 2, "lower"),
        Column("median, degrees", 1, "lower"),
        Column("said to be not here"),
        Column("of another house, said to be here"),
    ]
    rows = []
    for finding in results.findings:
        for what, here, away in (
            ("with depth", finding.rgbd, finding.elsewhere),
            ("by colour alone", finding.rgb, finding.elsewhere_rgb),
        ):
            refused = f"{_refused(here)} of {len(here)}"
            cells = [_share(here), *here.median, refused, f"{away.found} of {len(away)}"]
            rows.append(Row(f"{finding.label}, {what}", cells))
    notes = [
        "Medians are over all images of the house; those said to be not here count as infinitely far. How sure an "
        "answer must be was set once, for well-trained features in other houses, and is the same in all rows."
    ]
    return f"""<h2>A map of a new house</h2>
<p>{escape(results.mapped.name)} was mapped from every other of its {len(results.spot.shown)} images:
{len(ours.world):,} landmarks, the spots that features tell apart best. Each image between them was then placed by
matching its patches to the landmarks; so were images of a house that is not on the map.</p>
{plan(ours, results.seen)}
<p class=note>The map from above: landmarks below {ABOVE:g} m in their own colours, larger where they are recognised
better; cameras and where they look, found with depth by {escape(ours.label)}.</p>
{table_html(Table("Where images were taken", columns, rows, notes))}
<div class=beside>{error_curves(results.findings)}</div>
<p class=note>The share of images that are off by no more than so much.</p>"""


def _training(results: Results) -> str:
    if not results.metrics:
        return ""
    settings = results.plan.settings
    return f"""<h2>How training went</h2>
<p>{settings.steps} steps, each of {settings.frames} images of one of {results.fitted} houses. At step 0 the
features are the untrained network's, whitened. The house not trained on is none of those measured in above: it chose
the step whose model is kept, and its images are those of another house. What more houses and steps bring is in
docs/training.md.</p>
<div class=scroll>{training_curves(results.metrics)}</div>"""


def _how(results: Results) -> str:
    rows = "".join(
        f"<tr><td>{escape(done.title)}</td><td>{escape(done.result)}</td><td>{duration(done.seconds)}</td></tr>"
        for done in results.done
    )
    locus, model = escape(program()), escape(results.name)
    view = (
        f"# the house above in your browser: click on things, localize images; Ctrl-C stops\n{escape(results.view)}\n"
    )
    return f"""<h2>What was done</h2><table class=done>{rows}</table>
<p class=note>The network: {escape(results.model.name)}. All files are in {escape(str(results.folder.path))}. Run
again, the demo takes up what is finished, and the times are those of the last run.</p>
<h2>Next</h2><p>To be typed where the demo was started; capitals stand for what you have, docs/data.md says in which
formats.</p><pre>{view if results.view else ""}# your own posed images: are depth and poses sound?
{locus} inspect SCENE
# a map of them, and where other images were taken in it
{locus} map SCENE --model {model} --out map
{locus} localize IMAGE... --map map --model {model}
# what is like the thing at a pixel of an image, in all images
{locus} cosegment FRAME X Y SCENE --model {model}</pre>"""
