"""The names of the dictionary formats, without their modules, so that commands can list them at once.

A new format is one module in `bilex.lexicon.formats` and its line here.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

# The name of each format, and the module of `bilex.lexicon.formats` that reads and writes it.
DICTIONARY_MODULES = {
    "tsv": "tsv",
    "csv": "comma_separated",
    "jsonl": "json_lines",
    "muse": "muse",
    "deepl": "deepl",
    "omegat": "omegat",
    "tbx": "tbx",
    "tmx": "tmx",
    "tei": "tei",
    "stardict": "stardict",
    "apertium": "apertium",
    "synonyms": "synonyms",
    "anki": "anki",
    "hunalign": "hunalign",
    "bicleaner": "bicleaner",
    "xlsx": "xlsx",
    "dictd": "dictd",
    "wiktextract": "wiktextract",
}
READ_ONLY = ("dictd", "wiktextract")
DICTIONARY_FORMATS = tuple(DICTIONARY_MODULES)
WRITTEN_FORMATS = tuple(name for name in DICTIONARY_MODULES if name not in READ_ONLY)

GROUP = "bilex.formats"  # the entry-point group in which other distributions register formats


def registered_formats() -> dict[str, EntryPoint]:
    """The formats that other distributions register, by name; a name of ours is not theirs."""
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in DICTIONARY_MODULES}
