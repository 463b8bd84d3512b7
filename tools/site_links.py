"""A hook of mkdocs: links of a page to files outside docs/ lead to the repository, and must exist.

The pages are read on GitHub too, where `../README.md` is right; on the site it would lead nowhere.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\]\((?P<path>\.\./[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")


class DeadLinkError(ValueError):
    """A link to a file that the repository does not have."""


def outward_links(markdown: str, page: str, repository: str) -> str:
    """The text of a page under docs/, with links that leave docs/ replaced by addresses of the repository."""

    def replaced(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link["path"]))
        if path.startswith("docs/"):
            return link[0]
        if not (ROOT / path).exists():
            raise DeadLinkError(f"docs/{page} links to {path}, which does not exist; correct the link.")
        return f"]({repository.rstrip('/')}/blob/main/{path}{link['anchor'] or ''})"

    return _LINK.sub(replaced, markdown)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: object) -> str:
    """Called by mkdocs for every page."""
    return outward_links(markdown, page.file.src_uri, config.repo_url or "")
