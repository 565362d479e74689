"""The command `demo`."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from locus.commands.options import Switch, check_first


def demo(out: Path | None = None, quick: Switch = False, pretrained: str | None = None) -> int:
    """Show what LoCUS does, from nothing, in about ten minutes.

    Two cores and no GPU are enough. Generates houses, trains on some, evaluates in others beside the untrained
    network, maps one, localizes images in it, co-segments, and writes report.html. Run again, it skips what is
    finished.

    Args:
        out: The folder for all of it. By default demo, or demo-quick with --quick.
        quick: A small one, about two minutes: it shows how things go, not how good they get.
        pretrained: Train nothing and use this model: `locus-small`, a run's folder, or one on the Hugging Face hub.
    """
    check_first(folders=[out], model=pretrained)
    from locus.demo.pipeline import run
    from locus.demo.plan import FULL, QUICK

    results = run(out or Path("demo-quick" if quick else "demo"), QUICK if quick else FULL, pretrained)
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"\nOpen [bold]{escape(str(results.folder.report))}[/bold] in a browser")
    if results.view:
        console.print(f"To walk through the house and click on things: [bold]{escape(results.view)}[/bold]")
    return 0
