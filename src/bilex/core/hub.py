"""Model folders on the Hugging Face hub: `push_to_hub` and `from_pretrained`.

Needs huggingface_hub (extra `hub`). A repository holds the files of a model folder; its card gets a header
with the languages, by which the hub finds it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError, optional_library, reason_of
from bilex.core.manifest import CARD

if TYPE_CHECKING:
    from typing import Self

_SHOWN_REASON = 120
_TAGS = "tags:\n- bilingual-lexicon-induction\n- word-translation\n"


class OnTheHub:
    """A base of models that can be stored on the hub."""

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
        folder = Path(repository)
        if not folder.is_dir():
            where = {"revision": revision, "token": token, "endpoint": endpoint, "cache_dir": cache}
            failure = "is not a folder here and could not be fetched from the hub"
            with _hub(f"{repository}: {failure}", "check the name and the connection") as hub:
                folder = Path(hub.snapshot_download(repository, library_name="bilex", **where))
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
        advice = "check the name, your token ('hf auth login') and the connection"
        with (
            tempfile.TemporaryDirectory(prefix="bilex-") as temporary,
            _hub(f"{repository}: could not be written to the hub", advice) as hub,
        ):
            folder = Path(temporary) / "model"
            self.save(folder)
            languages = "".join(["language:\n", *(f"- {code}\n" for code in self.language_codes)])
            header = f"---\n{languages if self.language_codes else ''}library_name: bilex\n{_TAGS}---\n\n"
            card = folder / CARD
            text = header + card.read_text(encoding="utf-8")
            card.write_text(text, encoding="utf-8", newline="\n")
            api = hub.HfApi(endpoint=endpoint, token=token, library_name="bilex")
            api.create_repo(repository, private=private, exist_ok=True)
            commit = api.upload_folder(repo_id=repository, folder_path=folder, commit_message="A bilex model")
            return str(commit.commit_url)


@contextlib.contextmanager
def _hub(failure: str, advice: str) -> Iterator[Any]:
    """The library huggingface_hub; its errors about a name, access or connection become one sentence."""
    with optional_library("the Hugging Face hub", "bilex[hub]"):
        import huggingface_hub
        from huggingface_hub.errors import HfHubHTTPError
    try:
        yield huggingface_hub
    except (OSError, ValueError, *HfHubHTTPError.__bases__) as error:  # and those of its HTTP library
        reason = reason_of(error)
        short = reason if len(reason) <= _SHOWN_REASON else f"{reason[: _SHOWN_REASON - 1]}…"
        raise BilexError(f"{failure} ({short}); {advice}.") from error
