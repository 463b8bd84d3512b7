"""`bilex benchmark figures`: the figures of a results file, as files."""

from __future__ import annotations

from pathlib import Path

import click

from bilex.cli.options import examples
from bilex.core.errors import BilexError

_KINDS = ("heat-map", "lambda", "frequency", "time", "tsne")
_ENDINGS = {"png": ("png",), "svg": ("svg",), "both": ("png", "svg")}


@click.command(
    epilog=examples(
        "bilex benchmark figures results.sqlite -o figures",
        "bilex benchmark figures results.sqlite -o figures --figure lambda --figure tsne --format svg",
    )
)
@click.argument("results", type=click.Path())
@click.option("-o", "--output", required=True, metavar="FOLDER", help="Where the files go.")
@click.option(
    "--figure",
    "kinds",
    type=click.Choice(_KINDS),
    multiple=True,
    help="Draw these only; may be given several times.",
)
@click.option(
    "--format",
    "endings",
    type=click.Choice(list(_ENDINGS)),
    default="both",
    show_default=True,
    help="Points for slides, lines for print, or both.",
)
def command(results: str, output: str, kinds: tuple[str, ...], endings: str) -> None:
    """Draw the figures that RESULTS allow, each into files of its own.

    heat-map: P@1 of every direction by every method. lambda: P@1 against the weight of the language
    model. frequency: P@1 by how frequent a word is. time: accuracy against time. tsne: test words of
    both languages in the plane, before and after. The same results give the same bytes. Needs
    bilex-bench[report].
    """
    from bilex.cli.console import progress, show, warn
    from bilex.core.files import atomic_file, write_text
    from bilex_bench.figures import draw_figures
    from bilex_bench.store import ResultsStore

    wanted = kinds or _KINDS
    with ResultsStore.open(results, create=False) as store:
        found = store.results(samples="tsne" in wanted)
    drawings = draw_figures(found, wanted, progress=progress())
    if not drawings:
        raise BilexError(f"{results}: holds nothing that {' or '.join(wanted)} could show.")
    for kind in wanted:
        if not any(drawing.kind == kind for drawing in drawings):
            warn(f"{results}: holds nothing that {kind} could show.")
    folder = Path(output)
    for drawing in drawings:
        for ending in _ENDINGS[endings]:
            path = folder / f"{drawing.name}.{ending}"
            if ending == "svg":
                write_text(path, drawing.svg())
            else:
                with atomic_file(path) as temporary:
                    temporary.write_bytes(drawing.png())
            show(f"{path}: {drawing.title}")
