"""`agentmem memory`: what people see and do with a store's URL and nothing else."""

import asyncio
import getpass
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agentmem.cli.main import app
from agentmem.facts import Evidence, Read, Step, Write
from agentmem.records import DreamRecord
from agentmem.storage.protocol import TransactionalProvider
from agentmem.storage.registry import Providers
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase
from tests.dreams import STORE, Scene
from tests.postgres import postgres_server, postgresql_url
from tests.providers.test_transcripts import START, rows
from tests.unit.test_dream_decisions import doubting, moving, prepared

__all__ = ["postgres_server", "postgresql_url"]

AT = ("--agent", "friend", "--scope", "ada")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store with facts, a dream and a conversation; there is no project around it."""
    monkeypatch.chdir(tmp_path)
    if request.param == "postgresql":
        made = request.getfixturevalue("postgresql_url")
    else:
        made = f"sqlite:///{tmp_path / 'elsewhere' / 'facts.db'}"
    asyncio.run(_with_store(made, _fill))
    return made


async def _with_store(url: str, work: Callable[[TransactionalProvider], Any]) -> Any:
    providers = Providers(Path("unused"), url)
    try:
        return await work(await providers.get("default"))
    finally:
        await providers.close()


async def _fill(store: TransactionalProvider) -> None:
    await store.memorize("friend", "ada", "city", "Oslo")
    await store.memorize("friend", "ada", "pet", {"name": "Momo\x1b[31m"})
    await store.memorize("friend", "bob", "city", "Rome")
    await store.append("friend", "ada", rows(1, 2, text="I moved to Bergen"))
    record = await store.open_dream("friend", "ada", DreamRecord(id="d1", opened_at=START))
    said = Evidence(
        session="r1", memory="wm0", message="m1", said_at=START, quote="I moved to Bergen"
    )
    bergen = Write(key="city", value="Bergen", writer="dream", evidence=[said])
    step = Step(id="c1", reads=[Read(key="city", version=1)], writes=[bergen])
    await store.commit("friend", "ada", record, [step])


def recalled(url: str, scope: str = "ada") -> dict[str, Any]:
    """Return the values that a scope holds, by key."""
    return asyncio.run(_with_store(url, lambda store: store.recall("friend", scope)))


def run(url: str, *arguments: str, at: tuple[str, ...] = AT) -> Result:
    """Run a command of `agentmem memory`."""
    return CliRunner().invoke(app, ["memory", *arguments, *at, "--database", url])


def test_facts_and_their_history_are_shown(url: str) -> None:
    """Values, quotes and the name to undo by; nothing that moves the cursor."""
    shown = run(url, "facts")
    assert shown.exit_code == 0
    for text in ("city", "Bergen", "Momo", "2 facts"):
        assert text in shown.output
    assert "Rome" not in shown.output
    assert "\x1b" not in shown.output
    told = run(url, "history", "city").output
    for text in ("Oslo", "I moved to Bergen", "d1/c1", "city@1", "r1 wm0 m1"):
        assert text in told
    lines = run(url, "history", "city", "--json").output.splitlines()
    assert [json.loads(line)["value"] for line in lines] == ["Oslo", "Bergen"]
    (line,) = run(url, "facts", "pet", "--json").output.splitlines()
    assert json.loads(line)["value"] == {"name": "Momo\x1b[31m"}
    assert run(url, "scopes", at=("-a", "friend")).output.split() == ["ada", "bob"]


def test_a_dream_is_taken_back(url: str) -> None:
    """A restored key is printed; one changed since is printed on standard error, with exit 1."""
    done = run(url, "undo", "d1")
    assert (done.exit_code, done.stdout) == (0, "taken back: city\n")
    assert recalled(url)["city"] == "Oslo"
    run(url, "forget", "city")
    late = run(url, "undo", "city@1")
    assert (late.exit_code, late.stderr) == (1, "changed since, left as it is: city\n")
    unknown = run(url, "undo", "d7")
    assert unknown.exit_code == 1
    assert "history of a key" in unknown.stderr


def test_facts_are_pinned_and_forgotten(url: str) -> None:
    """By key alone; a key that is not there is an error."""
    assert run(url, "pin", "city").output == "pinned: city\n"
    assert "pinned" in run(url, "facts").output
    assert run(url, "unpin", "city").output == "unpinned: city\n"
    assert run(url, "forget", "city").output == "forgotten: city\n"
    for command in ("pin", "unpin", "forget"):
        refused = run(url, command, "city")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "there is no fact 'city'" in refused.stderr
    assert recalled(url) == {"pet": {"name": "Momo\x1b[31m"}}
    assert run(url, "history", "never").exit_code == 1


def test_a_message_is_forgotten(url: str) -> None:
    """By the names that a history shows; again there is nothing left of it."""
    assert run(url, "forget-message", "r1", "m1").output == "forgotten in 2 rows\n"
    assert "I moved" not in run(url, "history", "city").output
    assert run(url, "forget-message", "r1", "m1").exit_code == 1


def test_a_scope_is_taken_along_and_erased(url: str, tmp_path: Path) -> None:
    """Export, erase, import: as it was. Erasing asks first, and says what Temporal keeps."""
    before = recalled(url)
    file = str(tmp_path / "ada.jsonl")
    assert run(url, "export", file).exit_code == 0
    assert run(url, "import", file, at=()).exit_code == 1
    assert (
        CliRunner().invoke(app, ["memory", "erase", *AT, "--database", url], input="n\n").exit_code
    )
    assert recalled(url) == before
    erased = run(url, "erase", "--yes")
    assert erased.exit_code == 0
    assert "Temporal still has the histories" in erased.output
    assert (recalled(url), recalled(url, "bob")) == ({}, {"city": "Rome"})
    assert run(url, "import", file, at=()).exit_code == 0
    assert recalled(url) == before
    again = run(url, "export").output
    assert again == Path(file).read_text()
    assert run(url, "import", file, at=("--scope", "new")).exit_code == 0
    assert recalled(url, "new") == before


def test_what_dreams_hold_back_is_decided(tmp_path: Path) -> None:
    """The list, one applied and one discarded, what to undo it by; and the gate is opened."""
    file = tmp_path / "facts.db"

    async def propose() -> str:
        scene = Scene(SqlProvider(SqliteDatabase(file)))
        await scene.provider.open()
        await prepared(scene)
        report = await scene.dream(moving(), mode="propose")
        await scene.provider.close()
        return report.dream

    dream = asyncio.run(propose())
    url, at = f"sqlite:///{file}", ("-a", STORE.agent, "-s", STORE.scope)
    shown = run(url, "waiting", at=at).output
    for line in (
        f"{dream} c1 proposed: update city\n  old city: Lives in Oslo\n  new: Moved to Bergen\n",
        '  quote: "I moved to Bergen. My cat is named Momo." (user, 2026-03-25)\n',
        " held: remove job\n  old job: Works as a baker\n  why: a removal needs ",
    ):
        assert line in shown
    for word in ("accepted", "as before"):
        assert word not in shown
    lines = run(url, "waiting", "--json", at=at).output.splitlines()
    city, pet, job = map(json.loads, lines)
    assert (city["old"], city["new"]) == ({"city": "Lives in Oslo"}, "Moved to Bergen")
    assert (city["speaker"], city["said_at"][:10]) == ("user", "2026-03-25")
    assert (pet["status"], job["status"], job["new"]) == ("proposed", "held", None)
    nothing = run(url, "undo", dream, at=at)
    assert (nothing.exit_code, "nothing of" in nothing.stderr) == (0, True)
    applied = run(url, "apply", dream, "c1", "--by", "Ada", at=at).output.splitlines()
    assert applied[0] == "applied: update city"
    assert run(url, "discard", dream, at=at).output.splitlines() == [
        "discarded: add pet",
        "discarded: remove job",
    ]
    assert run(url, "waiting", at=at).output == ""
    undone = run(url, "undo", applied[1].removeprefix("undo by: "), at=at)
    assert undone.output == "taken back: city\n"
    versions = run(url, "history", "city", "--json", at=at).output.splitlines()
    authors = [json.loads(line)["author"] for line in versions]
    assert authors == ["", "Ada", getpass.getuser()]
    of_the_proposal = run(url, "undo", dream, at=at)  # with all that was applied of it
    assert of_the_proposal.output == "taken back: city\n"
    wrong = run(url, "apply", dream, "c9", at=at)
    assert (wrong.exit_code, "has no change c9" in wrong.stderr) == (1, True)
    assert run(url, "open-gate", at=at).output.startswith("the gate is open")
    assert run(url, "apply", "nowhere", at=at).exit_code == 1


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}\n", b"[1]\n", b"no JSON\n", b'{"agentmem_export": 9}\n'),
        *(b"\xff\xfe", b'{"agentmem_export": 1}\n', b"[" * 100_000),
        b'{"agentmem_export": 1, "agent": 5, "scope": null}\n',
    ],
)
def test_what_is_no_export_is_refused(content: bytes, tmp_path: Path) -> None:
    """A line says what is wrong with the file, and nothing is stored."""
    file = tmp_path / "odd.jsonl"
    file.write_bytes(content)
    refused = run(f"sqlite:///{tmp_path}/x.db", "import", str(file), at=())
    assert refused.exit_code == 1
    assert str(file) in refused.stderr


def test_an_export_needs_a_place_to_go(url: str, tmp_path: Path) -> None:
    """A file that cannot be written is a line and exit code 1."""
    refused = run(url, "export", str(tmp_path / "missing" / "ada.jsonl"))
    assert (refused.exit_code, "cannot be written" in refused.stderr) == (1, True)


def test_an_export_that_was_cut_off_is_refused(url: str, tmp_path: Path) -> None:
    """A file without its last lines is refused, whatever they were: nothing of it is stored."""
    file = tmp_path / "ada.jsonl"
    assert run(url, "export", str(file)).exit_code == 0
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    for cut in range(1, len(lines)):
        file.write_text("".join(lines[:cut]), encoding="utf-8")
        refused = run(url, "import", str(file), at=("--scope", "new"))
        assert (refused.exit_code, "not whole" in refused.output) == (1, True), refused.output
    assert recalled(url, "new") == {}


def test_the_command_needs_a_url_and_no_project(url: str, tmp_path: Path) -> None:
    """The installed command, in an empty directory, with the URL in its environment."""
    command = Path(sys.executable).with_name("agentmem")
    done = subprocess.run(
        [command, "memory", "facts", "city", *AT, "--json"],
        cwd=tmp_path,
        env={"AGENTMEM_DATABASE_URL": url, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["value"] == "Bergen"


@pytest.mark.parametrize("bad", ["mysql://u:pa55word@h/d", "postgresql://u:pa55word@127.0.0.1:1/d"])
def test_a_url_that_does_not_do_is_not_shown(bad: str) -> None:
    """One line says what is wrong; the password is in none."""
    refused = run(bad, "facts")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("agentmem: ")
    assert "pa55word" not in refused.output + refused.stderr


@pytest.mark.parametrize("bad", ["mysql://u@h/d", "postgresql://u@h/d?pool_size=many"])
def test_the_place_of_a_wrong_url_is_named(bad: str, tmp_path: Path) -> None:
    """The option when it was the option, else the setting."""
    by_option = run(bad, "facts")
    assert by_option.stderr.startswith("agentmem: --database")
    assert "AGENTMEM_DATABASE_URL" not in by_option.stderr
    env = {"AGENTMEM_DATABASE_URL": bad, "AGENTMEM_DATA": str(tmp_path)}
    by_setting = CliRunner().invoke(app, ["memory", "facts", *AT], env=env)
    assert by_setting.stderr.startswith("agentmem: AGENTMEM_DATABASE_URL")


def test_people_store_and_sign(url: str) -> None:
    """A value as text or JSON, until a day, by a name; the history shows who did what."""
    stored = run(url, "set", "city", "Voss", "--by", "Ada")
    assert (stored.exit_code, stored.output) == (0, "stored: city\n")
    run(url, "set", "pets", '["Momo", 2]', "--as-json")
    run(url, "set", "voucher", "10 % off", "--until", "2020-02-01")
    run(url, "pin", "city", "--by", "Bob")
    assert recalled(url) == {"city": "Voss", "pet": {"name": "Momo\x1b[31m"}, "pets": ["Momo", 2]}
    [voucher] = map(json.loads, run(url, "facts", "voucher", "--json").output.splitlines())
    assert (voucher["expires_at"], voucher["writer"]) == ("2020-02-02T00:00:00Z", "person")
    assert "until 2020-02-02" in run(url, "facts").output
    versions = [
        json.loads(line) for line in run(url, "history", "city", "--json").output.splitlines()
    ]
    assert [(one["writer"], one["author"]) for one in versions] == [
        ("code", ""),
        ("dream", ""),
        ("person", "Ada"),
        ("person", "Bob"),
    ]
    shown = run(url, "history", "city").output
    assert "person Ada, user" in shown
    assert "person Bob, user" in shown
    run(url, "forget", "city", "--by", "Eve")
    last = json.loads(run(url, "history", "city", "--json").output.splitlines()[-1])
    assert (last["op"], last["author"]) == ("remove", "Eve")
    for wrong in (("k", "1", "--until", "soon"), ("k", "{", "--as-json"), (" ", "1")):
        refused = run(url, "set", *wrong)
        assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "k" not in recalled(url)


def test_people_confirm_facts(tmp_path: Path) -> None:
    """Facts that a dream could not confirm are shown so, and a person settles them one by one."""
    file = tmp_path / "facts.db"

    async def dreamt() -> None:
        scene = Scene(SqlProvider(SqliteDatabase(file)))
        await scene.provider.open()
        await prepared(scene)
        script = moving()
        script.before("verify", doubting("city", "pet"))
        await scene.dream(script)
        await scene.provider.close()

    asyncio.run(dreamt())
    url, at = f"sqlite:///{file}", ("-a", STORE.agent, "-s", STORE.scope)
    shown = run(url, "facts", at=at).output
    assert shown.count("not confirmed") == 2
    assert "not confirmed: Moved to Bergen" in shown
    assert "I moved to Bergen" in shown
    taken = run(url, "confirm", "city", "--by", "Ada", at=at)
    assert taken.output == "confirmed: city: Moved to Bergen\n"
    assert run(url, "confirm", "pet", at=at).output == "confirmed: pet: Cat is named Momo\n"
    facts = map(json.loads, run(url, "facts", "city", "pet", "--json", at=at).output.splitlines())
    for fact in facts:
        assert (fact["state"], fact["unconfirmed"], fact["trust"]) == ("settled", None, "user")
        assert [item["role"] for item in fact["evidence"]] == ["user"]
    assert "was Lives in Oslo until" in run(url, "facts", at=at).output
    last = json.loads(run(url, "history", "city", "--json", at=at).output.splitlines()[-1])
    assert (last["reason"], last["writer"], last["author"]) == ("confirmed", "person", "Ada")
    again = run(url, "confirm", "city", at=at)
    assert (again.exit_code, "confirmed already" in again.stderr) == (1, True)
    assert run(url, "confirm", "gone", at=at).exit_code == 1
    run(url, "undo", last["change"], at=at)
    assert "not confirmed: Moved to Bergen" in run(url, "facts", at=at).output
