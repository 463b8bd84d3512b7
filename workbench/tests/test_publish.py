"""Publishing a dictionary: files of every format, and a site."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import socket
import subprocess
import sys
import zipfile

import pytest

from bilex.cli import run
from bilex.lexicon import Entry
from bilex.lexicon.entries import Dictionary
from bilex.lexicon.formats.tables import defused, restored
from bilex_workbench.cli.serve import listening
from bilex_workbench.site import Cover, ontolex


def decide(client, source, reviewer="aino", **rest):
    answer = client.post("/api/review/decide", json={"source": source, "reviewer": reviewer, **rest})
    assert answer.status_code == 200, answer.text


@pytest.fixture
def reviewed(client, bench):
    """Three words decided: accepted, corrected by a formula, rejected."""
    words = bench.engine.space.source.index_to_key[300:303]
    best = client.get("/api/entry", params={"source": words[0]}).json()["target"]
    decide(client, words[0], verdict="accept", accepted=[best], candidates=[best])
    decide(client, words[1], verdict="accept", accepted=["=1+1"], note="@odd")
    decide(client, words[2], verdict="none", candidates=["one", "two"])
    return words, best


def test_only_confirmed_pairs_are_published(client, reviewed):
    words, best = reviewed
    text = client.get("/api/publish/export", params={"format": "tsv", "which": "confirmed"}).text
    pairs = [tuple(line.split("\t")[:2]) for line in text.splitlines()]
    assert pairs == [(words[0], best), (words[1], "=1+1")]
    preview = client.get("/api/publish/preview", params={"which": "confirmed"}).json()
    assert preview["pairs"] == preview["confirmed"] == 2 and preview["first"] == [
        list(pair) for pair in pairs
    ]


def test_confident_entries_are_added_and_rejected_ones_never(client, reviewed):
    words, _ = reviewed
    params = {"format": "jsonl", "which": "confident", "min_confidence": 0.5}
    lines = client.get("/api/publish/export", params=params).text.splitlines()
    entries = [json.loads(line) for line in lines]
    assert len(entries) > 10 and words[2] not in [entry["source"] for entry in entries]
    everything = client.get("/api/publish/export", params={"format": "jsonl", "which": "all"}).text
    sources = {json.loads(line)["source"] for line in everything.splitlines()}
    assert len(sources) == 599 and words[2] not in sources
    assert client.get("/api/publish/preview", params={"which": "confident"}).status_code == 400


def test_every_format_of_the_command_line(client, reviewed):
    formats = client.get("/api/publish/formats").json()["formats"]
    assert {"tsv", "csv", "jsonl", "tmx", "tbx", "stardict"} <= {form["name"] for form in formats}
    for form in formats:
        answer = client.get("/api/publish/export", params={"format": form["name"], "which": "confirmed"})
        assert answer.status_code == 200 and answer.content, form
        assert "attachment" in answer.headers["content-disposition"]
    for name in ("stardict", "site"):
        packed = client.get("/api/publish/export", params={"format": name, "which": "confirmed"})
        files = zipfile.ZipFile(io.BytesIO(packed.content)).infolist()
        assert len(files) > 1 and all(file.external_attr >> 16 == 0o100644 for file in files), name
    assert client.get("/api/publish/export", params={"format": "nosuch"}).status_code == 400


def test_formulas_are_defused_and_come_back(client, reviewed):
    text = client.get("/api/publish/export", params={"format": "csv", "which": "confirmed"}).text
    assert "'=1+1" in text
    rows = list(csv.DictReader(io.StringIO(client.get("/api/publish/sheet").text)))
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    for cell in ("=1+1", "'=1", "''@x", "'quoted'", "plain", "-", "\ttab", ""):
        assert restored(defused(cell)) == cell
        assert not defused(cell).startswith(("=", "+", "-", "@", "\t"))


def test_the_change_log_has_everything(client, reviewed):
    client.post("/api/review/undo", json={"reviewer": "aino"})
    rows = list(csv.DictReader(io.StringIO(client.get("/api/publish/changes").text)))
    assert [row["verdict"] for row in rows] == ["accept", "accept", "none"]
    assert all(row["reviewer"] == "aino" and row["at"] for row in rows)
    assert rows[2]["undone"] and not rows[0]["undone"]
    lines = client.get("/api/publish/changes", params={"format": "jsonl"}).text.splitlines()
    assert json.loads(lines[1])["accepted"] == ["=1+1"]


def test_a_sheet_goes_out_and_comes_back(client, bench, reviewed):
    text = client.get("/api/publish/sheet").text
    same = client.post("/api/publish/import", params={"reviewer": "ben"}, content=text.encode()).json()
    assert same["accepted"] == same["rejected"] == 0 and same["unchanged"] == 3 and not same["problems"]
    rows = list(csv.DictReader(io.StringIO(text)))
    fresh = [row for row in rows if not row["verdict"]][:3]
    fresh[0]["verdict"], fresh[1]["verdict"] = "yes", "no"
    lines = [list(rows[0]), *(list(row.values()) for row in fresh)]
    lines.append([fresh[2]["source"], "typed by hand", "", "", "yes", "", "", ""])
    lines.append([fresh[2]["source"], "x", "", "", "maybe", "", "", ""])
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=";").writerows(lines)
    content = ("\ufeff" + buffer.getvalue()).encode()
    counted = client.post("/api/publish/import", params={"reviewer": "ben", "dry_run": True}, content=content)
    assert client.get("/api/entries", params={"reviewer": "ben"}).json()["total"] == 0
    found = client.post("/api/publish/import", params={"reviewer": "ben"}, content=content).json()
    assert found == counted.json()
    assert (found["accepted"], found["rejected"], len(found["problems"])) == (2, 1, 1)
    assert "line 6" in found["problems"][0]
    assert client.get("/api/entry", params={"source": fresh[0]["source"]}).json()["status"] == "accepted"
    assert client.get("/api/entry", params={"source": fresh[1]["source"]}).json()["status"] == "rejected"
    assert client.get("/api/entry", params={"source": fresh[2]["source"]}).json()["accepted"] == [
        "typed by hand"
    ]


def test_what_is_no_sheet(shared_client):
    for content in (b"a,b\n1,2\n", b"\xff\xfe\x00", b""):
        refused = shared_client.post("/api/publish/import", params={"reviewer": "b"}, content=content)
        assert refused.status_code == 400 and refused.json()["detail"]


def test_the_shell_does_the_same(client, bench, reviewed, model, tmp_path, capsys):
    words, best = reviewed
    bench.stop()
    out, sheet = tmp_path / "confirmed.tsv", tmp_path / "sheet.csv"
    assert run(["review", "export", str(model), "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith(f"{words[0]}\t{best}")
    assert run(["review", "export", str(model), "--what", "sheet", "--limit", "5", "-o", str(sheet)]) == 0
    text = sheet.read_text(encoding="utf-8").replace(",,,,", ",yes,,,")
    sheet.write_text(text, encoding="utf-8")
    assert run(["review", "import", str(model), str(sheet), "--reviewer", "ben"]) == 0
    capsys.readouterr()
    assert run(["review", "status", str(model), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in status["by_reviewer"]] == ["aino", "ben"]
    assert run(["review", "status", str(model)]) == 0
    assert run(["review", "agreement", str(model)]) == 0
    assert "two people" in capsys.readouterr().out
    assert run(["review", "status", str(tmp_path / "nosuch")]) == 2


def test_a_model_that_nobody_served(model, capsys):
    assert run(["review", "status", str(model)]) == 2
    assert "bilex serve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "--token"),
        (["--token", "short"], "8 or more"),
        (["--token", ""], "8 or more"),
        (["--password-file", "/dev/null"], "8 or more"),
        (["--token", "long-enough", "--password-file", "x"], "not both"),
        (["--password-file", "/nonexistent/file"], "cannot be read"),
        (["--folder", "/nonexistent/folder"], "no folder"),
    ],
)
def test_serve_refuses_what_is_not_safe(options, said, model, capsys):
    assert run(["serve", str(model), *options]) == 2
    assert said in capsys.readouterr().err


def test_small_answers_are_sent_at_once():
    """Not held back until the browser has acknowledged their headers (Nagle's algorithm)."""

    async def connected() -> int:
        options = []

        async def answer(reader, writer):
            accepted = writer.get_extra_info("socket")
            options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = listening("127.0.0.1", 0)
        async with await asyncio.start_server(answer, sock=listener):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            await reader.read()
            writer.close()
        return options[0]

    assert asyncio.run(connected())


def test_serve_help_needs_no_heavy_import():
    code = "import sys; from bilex.cli import run; run(['serve', '--help']); sys.exit('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
    )


HOSTILE = "</script><b>"


@pytest.fixture
def published(client, bench):
    """A site with an entry that has a structure, and one that would like to be markup."""
    words = bench.engine.space.source.index_to_key[300:302]
    for source, accepted in zip(words, (["talo", "suku"], [HOSTILE]), strict=True):
        body = {"source": source, "reviewer": "a", "verdict": "accept", "accepted": accepted}
        assert client.post("/api/review/decide", json=body).status_code == 200
    senses = [
        {"gloss": "a building", "translations": [{"target": "talo", "comment": "usual"}]},
        {"gloss": "a family", "labels": ["old"], "translations": [{"target": "suku"}]},
    ]
    senses[0]["examples"] = [{"source": "An old house.", "target": "Vanha talo."}]
    body = {"source": words[0], "reviewer": "a", "article": {"part_of_speech": "noun", "senses": senses}}
    assert client.put("/api/entry/article", json=body).status_code == 200
    asked = {"format": "site", "title": "A <Fine> Dictionary", "authors": "Aino", "licence": "CC BY 4.0"}
    answer = client.get("/api/publish/export", params=asked)
    assert answer.status_code == 200 and "en-fi-site.zip" in answer.headers["content-disposition"]
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    files = {name.removeprefix("dictionary/"): archive.read(name).decode() for name in archive.namelist()}
    return words, files


def test_the_site_is_one_folder_with_a_cover(published):
    _, files = published
    assert set(files) == {"index.html", "style.css", "search.js", "data.js", "print.html"}
    cover = files["index.html"]
    assert "A &lt;Fine&gt; Dictionary" in cover and "English → Finnish" in cover
    for page in (cover, files["print.html"]):
        for fact in ("Aino", "CC BY 4.0", "2 entries, 3 translations", "not audited"):
            assert f"<dd>{fact}</dd>" in page
    assert "http" not in cover + files["print.html"] + files["style.css"]  # nothing is fetched


def test_the_entries_are_data_and_nothing_is_markup(published):
    words, files = published
    text = files["data.js"].removeprefix("window.DICTIONARY = ").rstrip().removesuffix(";")
    entries = {entry["word"]: entry for entry in json.loads(text)["entries"]}
    first = entries[words[0]]
    assert first["speech"] == "noun" and [sense["gloss"] for sense in first["senses"]] == [
        "a building",
        "a family",
    ]
    assert first["senses"][0]["examples"] == [["An old house.", "Vanha talo."]]
    assert first["senses"][0]["translations"] == [{"word": "talo", "comment": "usual", "labels": ""}]
    assert entries[words[1]]["senses"][0]["translations"][0]["word"] == HOSTILE
    assert "</script>" not in files["data.js"] and "<b>" not in files["print.html"]
    assert "Vanha talo." in files["print.html"]
    assert '<h4 lang="fi">suku</h4>' in files["print.html"]  # the other direction, too


def test_the_audit_stands_on_the_cover(client, published):
    client.post("/api/audit", json={"size": 30, "reviewer": "a"})
    item = client.get("/api/audit/next", params={"reviewer": "a"}).json()["items"][0]
    body = {"number": item["number"], "reviewer": "a", "verdict": "accept", "right": item["candidates"]}
    assert client.post("/api/audit/decide", json=body).status_code == 200
    answer = client.get("/api/publish/export", params={"format": "site"})
    cover = zipfile.ZipFile(io.BytesIO(answer.content)).read("dictionary/index.html").decode()
    assert "1 entries judged" in cover and "95 % interval" in cover


def test_control_characters_on_the_cover_are_refused(client, published):
    refused = client.get("/api/publish/export", params={"format": "site", "title": "a\u0007b"})
    assert refused.status_code in (400, 422) and refused.json()["detail"]


def test_linked_data():
    entries = [
        Entry("house", "talo", part_of_speech="noun", gloss="a building"),
        Entry("house", 'su"ku', part_of_speech="noun", gloss="a family", sense=2),
    ]
    text = ontolex(Dictionary(entries, ("en", "fi")), Cover("T", "A", "CC0")).decode()
    assert ':s1 a ontolex:LexicalEntry ; ontolex:canonicalForm [ ontolex:writtenRep "house"@en ]' in text
    assert 'skos:definition "a building"' in text and 'writtenRep "su\\"ku"@fi' in text
    assert text.count("a vartrans:Translation") == 2
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph().parse(data=text, format="turtle")
    assert len(graph) > 20
