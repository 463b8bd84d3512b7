"""`bilex review`: decisions about a model's dictionary, from the shell."""

from __future__ import annotations

from bilex.cli.group import subcommands

command = subcommands(
    "review",
    {
        "export": "Write a dictionary, the change log, or a sheet to fill in.",
        "import": "Take over the verdicts of a filled-in sheet.",
        "status": "Show how far the review is.",
        "agreement": "Show how far reviewers agree (Cohen's kappa).",
    },
    "Decisions about the dictionary of a model: what 'bilex serve' keeps in MODEL.review.sqlite.",
    package="bilex.cli",
)
