"""`bilex benchmark report`: a results file as one page."""

from __future__ import annotations

from pathlib import Path

import click

from bilex.cli.options import examples
from bilex.core.errors import BilexError


@click.command(
    epilog=examples(
        "bilex benchmark report results.sqlite -o report.html",
        "bilex benchmark run quick -o quick.sqlite && bilex benchmark report quick.sqlite -o quick.html",
    )
)
@click.argument("results", type=click.Path())
@click.option("-o", "--output", required=True, metavar="PAGE", help="The HTML file to write.")
@click.option(
    "--words/--no-words",
    default=True,
    show_default=True,
    help="Whether words of the test dictionary appear, as examples and on hovering; leave them out where "
    "the dictionary may not be passed on.",
)
def command(results: str, output: str, words: bool) -> None:
    """Write RESULTS as one HTML page: tables that sort, figures, machines, commands, failures.

    The page holds all it needs and loads nothing; it can be mailed, archived and printed. Needs
    bilex-bench[report].
    """
    if Path(output).is_dir():
        raise BilexError(
            f"{output}: is a folder; name the page to write in it, such as {output}/report.html."
        )
    from bilex.cli.console import progress, show
    from bilex.core.files import check_not_an_input, check_writable, write_text
    from bilex_bench.report import report_page
    from bilex_bench.store import ResultsStore

    check_not_an_input(output, results)
    check_writable(output)
    with ResultsStore.open(results, create=False) as store:
        page = report_page(
            store.results(samples=True),
            file_name=Path(results).name,
            page_name=Path(output).name,
            predictions=lambda result: store.predictions(result.setup.key),
            words=words,
            progress=progress(),
        )
    write_text(output, page)
    show(f"{output}: {len(page.encode()) / 1e6:.1f} MB")
