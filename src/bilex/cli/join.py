"""`bilex join`: models of two languages become one of many."""

from __future__ import annotations

import bilex
from bilex.cli.align_many import report_many
from bilex.cli.console import progress, warn
from bilex.cli.options import as_command, check_model_output, check_readable


@as_command("bilex join en-fi en-ru en-fr -o many", "bilex translate many koira --from fi --to ru")
def command(models: tuple[str, ...], *, output: str, force: bool = False, json: bool = False) -> None:
    """Join MODELS of two languages into one that translates from any language to any.

    The models must share languages, as en-fi, en-ru and en-fr share English. Nothing is learned anew: the
    space of each model is rotated onto those of the others, and languages that no model holds together are
    translated through the common space.

    Options:
        -o, --output MANY: The model folder to write.
        --force --json
    """
    check_readable(*models)
    check_model_output(output, force, *models)
    from bilex.model.joining import join

    listener = progress()
    opened = {model: bilex.Translator.load(model) for model in dict.fromkeys(models)}
    pairs: dict[frozenset[str], str] = {}
    for model, translator in opened.items():
        first = pairs.setdefault(frozenset(translator.language_codes), model)
        if first != model and translator.language_codes:
            warn(f"{first} and {model} are models of the same two languages: usually one of them is enough.")
    many = join(opened)
    many.save(output, progress=listener)
    report_many(many, output, json)
