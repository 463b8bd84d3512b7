"""`bilex review`: decisions about a model's dictionary, from the shell."""

from __future__ import annotations

from bilex.cli.group import subcommands

# \b is how click leaves the lines of a paragraph as they are.
_HELP = """Decisions about the dictionary of a model: what 'bilex serve' keeps in MODEL.review.sqlite.

\b
Examples:
  bilex review status en-fi
  bilex review export en-fi --what sheet -o sheet.csv
  bilex review import en-fi sheet.csv
  bilex review agreement en-fi
  bilex review repair en-fi
"""

command = subcommands(
    "review",
    {
        "export": "Write a dictionary, the change log, or a sheet to fill in.",
        "import": "Take over the verdicts of a filled-in sheet.",
        "status": "Show how far the review is.",
        "repair": "Rescue what can be read of a damaged review file.",
        "agreement": "Show how far reviewers agree (Cohen's kappa).",
    },
    _HELP,
    package="bilex_workbench.cli",
)
