"""`bilex join`: models of two languages become one of many."""

from __future__ import annotations

import click

from bilex.cli.align_many import check_output, report_many
from bilex.cli.options import check_readable, examples, json_option


@click.command(
    epilog=examples(
        "bilex join en-fi en-ru en-fr -o many",
        "bilex translate many koira --from fi --to ru",
    )
)
@click.argument("models", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", metavar="MANY", required=True, help="The model folder to write.")
@click.option("--force", is_flag=True, help="Replace an earlier model of that name.")
@json_option
def command(models: tuple[str, ...], output: str, force: bool, as_json: bool) -> None:
    """Join MODELS of two languages into one that translates from any language to any.

    The models must share languages, as en-fi, en-ru and en-fr share English. Nothing is learned anew: the
    space of each model is rotated onto those of the others, and languages that no model holds together are
    translated through the common space.
    """
    check_readable(*models)
    check_output(output, force, models)
    from bilex.cli.console import progress, warn
    from bilex.model import Translator
    from bilex.model.many.joining import join

    listener = progress()
    opened = {model: Translator.load(model) for model in dict.fromkeys(models)}
    pairs: dict[frozenset[str], str] = {}
    for model, translator in opened.items():
        first = pairs.setdefault(frozenset(translator.language_codes), model)
        if first != model and translator.language_codes:
            warn(f"{first} and {model} are models of the same two languages: usually one of them is enough.")
    many = join(opened)
    many.save(output, progress=listener)
    report_many(many, output, as_json)
