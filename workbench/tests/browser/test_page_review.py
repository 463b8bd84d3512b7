"""Review with the keyboard alone; every decision is on the server before the next entry is shown."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from opened_page import OpenedPage
from selenium.webdriver.common.keys import Keys

Name = Callable[[str], None]


def begin(page: OpenedPage, link: str = "review") -> str:
    page.go(link)
    return page.text(".entry-word .word")


def decisions(page: OpenedPage, source: str) -> list[dict[str, object]]:
    history = page.api(f"entry?source={quote(source, safe='')}")["history"]
    return [each for each in history if not each["undone"]]


def after(page: OpenedPage, source: str) -> str:
    """The next entry, once it stands there."""
    page.until(lambda: page.now(".entry-word .word") not in (None, source), "the next entry")
    return page.text(".entry-word .word")


def test_a_name_is_asked_for_first(page: OpenedPage) -> None:
    page.go("review")
    assert page.run("return document.activeElement.name") == "reviewer"
    page.keys("aino", Keys.ENTER)
    page.one(".entry-word")
    page.sees("#change-name", "Change name")
    assert "entry-word" in page.run("return document.activeElement.className")


def test_one_and_several_candidates_are_accepted(page: OpenedPage, reviewer: Name) -> None:
    reviewer("kaisa")
    first = begin(page)
    candidates = [each.get_attribute("data-word") for each in page.all(".candidate")]
    page.keys("1", Keys.ENTER)
    second = after(page, first)
    [saved] = decisions(page, first)
    assert (saved["verdict"], saved["accepted"], saved["reviewer"]) == ("accept", candidates[:1], "kaisa")
    candidates = [each.get_attribute("data-word") for each in page.all(".candidate")]
    page.keys("2", "3", "1", "1", Keys.ENTER)
    after(page, second)
    [saved] = decisions(page, second)
    assert (saved["accepted"], saved["rejected"]) == (candidates[1:3], candidates[:1])  # twice is wrong
    page.sees("#review-spoken", second)


def test_another_translation_is_typed_with_completion_or_freely(page: OpenedPage, reviewer: Name) -> None:
    reviewer("lauri")
    first = begin(page)
    page.keys("t")
    page.keys("hin")
    page.one(".type-row .options li")
    page.keys(Keys.ARROW_DOWN)
    completed = page.text(".type-row .options li[aria-selected=true] .word")
    page.keys(Keys.ENTER)
    if completed not in candidates_of(page):
        page.sees(".chips", completed)
    page.keys("täysin uusi sana", Keys.ENTER)
    page.sees(".question", "not among the words of this model")
    assert "täysin uusi sana" not in (page.now(".chips") or "")
    page.keys(Keys.ENTER)
    page.sees(".chips", "täysin uusi sana")
    assert page.text(".entry-word .word") == first
    page.keys(Keys.ENTER)
    after(page, first)
    assert set(decisions(page, first)[0]["accepted"]) == {completed, "täysin uusi sana"}  # type: ignore[call-overload]


def candidates_of(page: OpenedPage) -> list[str]:
    return [str(each.get_attribute("data-word")) for each in page.all(".candidate")]


def test_none_skip_and_note(page: OpenedPage, reviewer: Name) -> None:
    reviewer("mari")
    first = begin(page)
    page.keys("m")
    page.keys("ask Päivi", Keys.ENTER)
    page.keys("n")
    second = after(page, first)
    [saved] = decisions(page, first)
    assert (saved["verdict"], saved["accepted"], saved["note"]) == ("none", [], "ask Päivi")
    page.keys("s")
    after(page, second)
    assert decisions(page, second)[0]["verdict"] == "skip"


def test_nothing_chosen_is_not_saved(page: OpenedPage, reviewer: Name) -> None:
    reviewer("nora")
    first = begin(page)
    page.keys(Keys.ENTER)
    page.sees("[role=alert]", "Judge a candidate")
    assert page.text(".entry-word .word") == first and not decisions(page, first)


def test_undo_has_no_limit_and_shows_what_was_chosen(page: OpenedPage, reviewer: Name) -> None:
    reviewer("oskari")
    seen = [begin(page)]
    for _ in range(6):
        page.keys("2", Keys.ENTER)
        seen.append(after(page, seen[-1]))
    page.go("review")
    page.one(".entry-word")
    for source in reversed(seen[:6]):
        page.keys("u")
        page.until(lambda source=source: page.text(".entry-word .word") == source, f"{source} again")  # type: ignore[misc]
        assert page.all(".candidate")[1].get_attribute("aria-pressed") == "true"
        assert not decisions(page, source)
    page.expect_failed_request(409)
    page.keys("u")
    page.sees("[role=alert]", ".")
    page.keys("2", "1", Keys.ENTER)
    after(page, seen[0])
    assert len(decisions(page, seen[0])) == 1


def test_verdicts_are_seen_before_they_are_stored(page: OpenedPage, reviewer: Name) -> None:
    reviewer("kerttu")
    first = begin(page)
    words = candidates_of(page)
    page.keys("1", "2", "2", "3", "3", "3")
    page.sees(".to-store", f"✓ {words[0]} ✗ {words[1]} ? {words[2]}")
    page.sees(".to-store", f"{len(words) - 3} not judged")
    page.keys("1")
    page.sees(".to-store", "the entry stays in the queue")
    page.click(".candidate-row:nth-child(4) .verdict.no")
    page.keys(Keys.ESCAPE)
    page.keys("5")
    page.click(".save")
    after(page, first)
    [saved] = decisions(page, first)
    assert saved["accepted"] == [words[4]] and saved["unsure"] == [words[2]]
    assert set(saved["rejected"]) == {words[0], words[1], words[3]}  # type: ignore[call-overload]


def test_kinds_are_chosen(page: OpenedPage, reviewer: Name) -> None:
    reviewer("liisa")
    begin(page)
    page.choose("#review-kind", "function")
    wanted = page.api("review/next?reviewer=liisa&kind=function&count=1")["items"][0]["source"]
    page.until(lambda: page.text(".entry-word .word") == wanted, "the first function word")
    page.sees(".decision header", "function word")
    assert page.run("return location.hash") == "#/review?kind=function"


def test_the_next_entry_is_already_loaded(page: OpenedPage, reviewer: Name) -> None:
    reviewer("pia")
    first = begin(page)
    # From here on the queue never answers again: what comes next must be in the page already.
    page.run(
        "const real = window.fetch; window.calls = [];"
        "window.fetch = (path, given) => { window.calls.push(path);"
        " return path.includes('review/next') ? new Promise(() => {}) : real(path, given); };"
    )
    page.keys("1", Keys.ENTER)
    after(page, first)
    assert "/api/review/decide" in page.run("return window.calls")


def test_a_failed_save_keeps_the_entry(page: OpenedPage, reviewer: Name) -> None:
    reviewer("risto")
    first = begin(page)
    page.run("window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError('gone'))")
    page.keys("1", Keys.ENTER)
    page.sees("[role=alert]", "The server does not answer")
    assert page.text(".entry-word .word") == first
    page.run("window.fetch = window.real")
    page.keys(Keys.ENTER)
    after(page, first)
    assert len(decisions(page, first)) == 1


def test_orders_and_entries_are_chosen_and_linked(page: OpenedPage, reviewer: Name) -> None:
    reviewer("sanna")
    begin(page)
    page.choose("#review-order", "frequency")
    wanted = page.api("review/next?reviewer=sanna&order=frequency&count=1")["items"][0]["source"]
    page.until(lambda: page.text(".entry-word .word") == wanted, "the most frequent entry")
    assert page.run("return location.hash") == "#/review?order=frequency"
    begin(page, "review?order=frequency")
    assert page.text(".entry-word .word") == wanted


def test_letters_do_nothing_while_one_types_or_when_switched_off(page: OpenedPage, reviewer: Name) -> None:
    reviewer("timo")
    first = begin(page)
    page.keys("m")
    page.keys("none such")
    page.keys(Keys.ESCAPE)
    assert page.text(".entry-word .word") == first and not decisions(page, first)
    page.keys("?")
    page.one("dialog#keys")
    page.click("dialog#keys input[type=checkbox]")
    page.keys(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog#keys"), "the dialog to close")
    page.keys("n", "s")
    assert page.text(".entry-word .word") == first and not decisions(page, first)


def test_why_is_shown_by_a_key(page: OpenedPage, reviewer: Name) -> None:
    reviewer("ulla")
    begin(page)
    page.keys("w")
    page.until(lambda: page.all(".decision .neighbours"), "the neighbours")


def test_note_field_and_why_are_in_sight(page: OpenedPage, reviewer: Name) -> None:
    reviewer("viivi")
    page.resize(1280, 900)
    begin(page)
    page.keys("w")
    page.until(lambda: page.all(".decision .neighbours"), "the neighbours")
    for selector in (".note-row textarea", ".type-row input", ".save", ".why h3", ".why .neighbours"):
        seen = page.run(
            "const e = document.querySelector(arguments[0]), box = e.getBoundingClientRect();"
            "const top = document.elementFromPoint(box.left + 4, box.top + 4);"
            "return box.top >= 0 && box.top + 20 <= innerHeight && (e.contains(top) || top.contains(e))",
            selector,
        )
        assert seen, selector


def test_the_structure_of_an_entry_by_keyboard(page: OpenedPage, reviewer: Name) -> None:
    reviewer("vieno")
    page.go("entry?source=price")
    page.one("#article")
    page.keys("1", Keys.ENTER)
    page.sees(".view-head", "accepted")
    page.one("#article")
    page.keys("e")
    page.keys("noun", Keys.TAB, "what one pays", Keys.TAB, "trade, formal")
    page.keys(Keys.CONTROL + Keys.ENTER)

    def article() -> dict[str, object]:
        return page.api("entry?source=price")["article"]  # type: ignore[no-any-return]

    page.until(lambda: article()["part_of_speech"] == "noun", "the structure")
    [sense] = article()["senses"]  # type: ignore[misc]
    assert sense["gloss"] == "what one pays" and sense["labels"] == ["trade", "formal"]
    assert sense["translations"][0]["target"]
    assert page.violations() == []


def test_the_other_direction_is_reviewed_by_keyboard(page: OpenedPage, reviewer: Name) -> None:
    reviewer("onni")
    forward = begin(page)
    page.api("review/next?reviewer=onni&direction=backward")  # starts to fill the table of Finnish words
    page.until(lambda: (page.api("model")["backward"] or {}).get("complete"), "the table of Finnish words")
    page.press("#turn")
    assert page.run("return location.hash") == "#/review?direction=backward"
    source = after(page, forward)
    queue = page.api("review/next?reviewer=onni&direction=backward&count=1")
    assert queue["items"][0]["source"] == source and "Finnish → English" in page.text("#turn")
    assert page.one(".entry-word .word").get_attribute("lang") == "fi"
    first = page.all(".candidate")[0].get_attribute("data-word")
    page.keys("w")
    page.until(lambda: page.all(".why .neighbours li.marked"), "the neighbours")
    page.keys("t")
    page.keys("pri")
    page.one(".type-row .options li")
    page.keys(Keys.ESCAPE, Keys.ESCAPE)
    page.run("document.querySelector('.type-row input').value = ''")
    page.keys("1", Keys.ENTER)
    after(page, source)
    saved = page.api(f"entry?direction=backward&source={quote(source, safe='')}")["history"][0]
    assert (saved["verdict"], saved["accepted"]) == ("accept", [first])
    assert page.violations() == []
    page.press("nav a[data-view=table]")
    page.sees("#table-total", "entr")
    assert page.run("return location.hash") == "#/table?direction=backward"
    page.go(f"entry?source={quote(source, safe='')}&direction=backward")
    page.sees("h1", source)
    page.sees("main", "onni")
    page.press("#turn")
    page.until(lambda: "English → Finnish" in page.text("#turn"), "the first direction")
    assert page.run("return location.hash") == "#/table"
