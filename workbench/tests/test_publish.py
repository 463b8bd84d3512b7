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
from bilex.lexicon.formats.tables import defused, restored
from bilex_workbench.cli.serve import listening


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
    packed = client.get("/api/publish/export", params={"format": "stardict", "which": "confirmed"})
    assert len(zipfile.ZipFile(io.BytesIO(packed.content)).namelist()) > 1
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
