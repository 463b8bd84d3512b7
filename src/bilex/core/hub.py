"""Model folders on the Hugging Face hub: `push_to_hub` and `from_pretrained`.

Needs huggingface_hub (extra `hub`). A repository holds the files of a model folder; its card gets a header
with the languages, by which the hub finds it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError
from bilex.core.manifest import CARD, CHECKSUMS, checksums

if TYPE_CHECKING:
    from typing import Self

_KEPT = 120
_HTTP_LIBRARIES = ("httpx2", "httpx")  # which one huggingface_hub uses depends on its version


class OnTheHub:
    """What a model needs to be put on the hub and fetched from it; a base of the classes of models."""

    if TYPE_CHECKING:
        language_codes: Any

        def save(self, folder: Path) -> None:
            """Write the model into a folder."""

        @classmethod
        def load(cls, folder: Path, *, device: str) -> Self:
            """Open a folder that `save` wrote."""

    @classmethod
    def from_pretrained(
        cls,
        repository: str,
        *,
        revision: str | None = None,
        token: str | None = None,
        endpoint: str | None = None,
        cache: str | Path | None = None,
        device: str = "auto",
    ) -> Self:
        """Open a model of the Hugging Face hub, or a folder; needs the extra `hub`.

        Args:
            repository: Such as "someone/en-fi", or a model folder.
            revision: A branch, tag or commit; None for the newest.
            token: An access token; None for the one that huggingface_hub keeps.
            endpoint: The address of another hub.
            cache: Where copies are kept; None for huggingface_hub's own folder.
            device: Where searches run.

        Raises:
            BilexError: It cannot be fetched, or is no such model.
        """
        folder = fetch_model(repository, revision=revision, token=token, endpoint=endpoint, cache=cache)
        return cls.load(folder, device=device)

    def push_to_hub(
        self,
        repository: str,
        *,
        private: bool = False,
        token: str | None = None,
        endpoint: str | None = None,
    ) -> str:
        """Put the model into a repository of the Hugging Face hub, its card as README; needs the extra `hub`.

        Args:
            repository: Such as "someone/en-fi"; it is made if it is not there.
            private: Whether a new repository is private.
            token: An access token; None for the one that huggingface_hub keeps.
            endpoint: The address of another hub.

        Returns:
            The address of the commit.

        Raises:
            BilexError: The hub refused, or could not be reached.
        """
        return push_model(
            self.save, repository, self.language_codes, private=private, token=token, endpoint=endpoint
        )


def push_model(
    save: Callable[[Path], None],
    repository: str,
    languages: Sequence[str],
    *,
    private: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Save a model into a temporary folder and put its files into a repository, in one commit.

    Args:
        save: Writes the model into a folder.
        repository: Such as "someone/en-fi"; it is made if it is not there.
        languages: The codes of the model's languages, for the card.
        private: Whether a new repository is private.
        token: An access token; None for the one that huggingface_hub keeps.
        endpoint: The address of another hub.

    Returns:
        The address of the commit.

    Raises:
        BilexError: huggingface_hub is not installed, or the hub refused or could not be reached.
    """
    hub = _library()
    api = hub.HfApi(endpoint=endpoint, token=token, library_name="bilex")
    with tempfile.TemporaryDirectory(prefix="bilex-") as temporary:
        folder = Path(temporary) / "model"
        save(folder)
        card = header(languages) + (folder / CARD).read_text(encoding="utf-8")
        operations = [
            hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=folder / name)
            for name in (*checksums(folder), CHECKSUMS)
        ]
        operations.append(hub.CommitOperationAdd(path_in_repo=CARD, path_or_fileobj=card.encode("utf-8")))
        try:
            api.create_repo(repository, private=private, exist_ok=True)
            commit = api.create_commit(repository, operations, commit_message="A bilex model")
        except _failures() as error:
            raise BilexError(
                f"{repository}: could not be written to the hub ({_short(error)}); check the name, your "
                "token ('hf auth login') and the connection."
            ) from error
    return str(commit.commit_url)


def fetch_model(
    repository: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
    cache: str | Path | None = None,
) -> Path:
    """The folder of a model: one that is here, or a copy of a repository of the hub.

    Args:
        repository: A model folder, or a repository such as "someone/en-fi".
        revision: A branch, tag or commit; None for the newest.
        token: An access token; None for the one that huggingface_hub keeps.
        endpoint: The address of another hub.
        cache: Where copies are kept; None for huggingface_hub's own folder.

    Raises:
        BilexError: huggingface_hub is not installed, or there is no such repository, or the hub could not be
            reached and there is no copy.
    """
    if Path(repository).is_dir():
        return Path(repository)
    hub = _library()
    try:
        found = hub.snapshot_download(
            repository,
            revision=revision,
            token=token,
            endpoint=endpoint,
            cache_dir=cache,
            library_name="bilex",
        )
    except _failures() as error:
        raise BilexError(
            f"{repository}: is no folder here and could not be fetched from the hub ({_short(error)}); check "
            "the name and the connection."
        ) from error
    return Path(found)


def header(languages: Sequence[str]) -> str:
    """The lines at the top of a card that the hub reads."""
    listed = "".join(f"- {code}\n" for code in languages)
    codes = f"language:\n{listed}" if languages else ""
    return (
        f"---\n{codes}library_name: bilex\ntags:\n- bilingual-lexicon-induction\n- word-translation\n---\n\n"
    )


def _library() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise BilexError("huggingface_hub is not installed here; run: pip install 'bilex[hub]'") from error
    return huggingface_hub


def _failures() -> tuple[type[Exception], ...]:
    """What huggingface_hub raises when a name is wrong, access is refused, or there is no connection."""
    used = (sys.modules.get(name) for name in _HTTP_LIBRARIES)
    return OSError, ValueError, *(library.HTTPError for library in used if library is not None)


def _short(error: Exception) -> str:
    """The first line of an error, which may be a page long."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return first if len(first) <= _KEPT else first[: _KEPT - 1] + "…"
