"""Words that a page must show and not obey."""

from __future__ import annotations

HOSTILE = {
    "markup": "<script>document.title='broken'</script>",
    "image": "<img/src=x/onerror=document.title='broken'>",
    "bidi": "invoice\u202egnp.exe",
    "control": "bell\x07\x1b[31m",
    "right-to-left": "שלום",
    "joiner": "می\u200cخواهم",
    "long": "x" * 900,
    "megabyte": "y" * 1_000_000,
    "marks": "Z" + "\u0337\u0321\u0322\u031b\u0347\u0320" * 30,
}
