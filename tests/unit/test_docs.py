"""The documents hold what they promise: links lead somewhere, names and settings are the code's."""

import ast
import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agentmem
from agentmem.settings import Settings
from tests.names import names_in_code

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = ROOT / "docs" / "decisions"
REFERENCE = (ROOT / "docs" / "reference.md").read_text()

FENCE = re.compile(r"^([ ]*)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE_PATH = re.compile(
    r"`((?:agentmem|workflows|activities|tests|examples|docs|requirements)/[\w./-]*(?:\.\w+|/))`"
)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return FENCE.sub("", page.read_text())


def blocks(page: Path, language: str) -> list[str]:
    """Return a page's fenced blocks of a language, without their indentation."""
    return [
        re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
        for indent, name, text in FENCE.findall(page.read_text())
        if name == language
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(prose(page))
    }


def spans(text: str) -> list[str]:
    """Return what stands in backticks."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file or folder, and its anchor a heading there."""
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


@each_page
def test_paths_of_the_code_exist(page: Path) -> None:
    """Every path of the repository that a page names is there."""
    for path in CODE_PATH.findall(prose(page)):
        assert (ROOT / path).exists(), path


@each_page
def test_make_targets_exist(page: Path) -> None:
    """Every `make` command that a page prints is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    for command in re.findall(r"^ *make ([a-z -]+?)(?: *#.*)?$", "\n".join(blocks(page, "")), re.M):
        for target in command.split():
            assert f"\n{target}:" in makefile, command


@each_page
def test_python_blocks_are_python_and_import_what_exists(page: Path) -> None:
    """Each Python block parses, and finds in agentmem what it imports."""
    for text in blocks(page, "python"):
        tree = compile(text, str(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agentmem"):
                module = importlib.import_module(node.module or "")
                missing = [name.name for name in node.names if not hasattr(module, name.name)]
                assert not missing, node.module


@each_page
def test_data_blocks_parse(page: Path) -> None:
    """TOML and JSON blocks, and the JSON of each `--input`, are well-formed."""
    for text in blocks(page, "toml"):
        tomllib.loads(text)
    for text in blocks(page, "json"):
        json.loads(text)
    for text in re.findall(r"--input '([^']*)'", "\n".join(blocks(page, ""))):
        json.loads(text)


def test_every_setting_is_in_the_reference() -> None:
    """Each variable that a worker reads stands in the table of settings."""
    for field in Settings.model_fields:
        assert f"| `AGENTMEM_{field.upper()}` |" in REFERENCE, field


def test_every_frozen_name_is_in_the_reference() -> None:
    """Types, handlers, search attributes and errors that reach histories are all there."""
    missing = names_in_code() - set(spans(REFERENCE))
    assert not missing


def test_every_public_name_is_in_the_reference() -> None:
    """Each name that `from agentmem import ...` gives stands in the reference."""
    known = {word for span in spans(REFERENCE) for word in re.findall(r"\w+", span)}
    assert not set(agentmem.__all__) - known


def test_decisions_are_numbered_and_dated() -> None:
    """A decision has a number of its own, a date, and the three parts."""
    pages = _decisions()
    numbers = [page.name[:4] for page in pages]
    assert all(number.isdecimal() for number in numbers)
    assert len(set(numbers)) == len(numbers)
    for page in pages:
        text = page.read_text()
        assert text.startswith(f"# {page.name[:4]}: "), page.name
        assert re.search(r"^20\d\d-\d\d-\d\d$", text, re.MULTILINE), page.name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
        ], page.name


def test_every_decision_is_listed() -> None:
    """The list of decisions links each one, under its own title and in order."""
    listed = re.findall(
        r"^\| (\d{4}) \| \[(.+)\]\((.+)\) \|$", (DECISIONS / "README.md").read_text(), re.M
    )
    titles = [(page.name[:4], _title(page).partition(": ")[2], page.name) for page in _decisions()]
    assert listed == titles


def test_the_site_shows_every_page() -> None:
    """Each page is in the site's navigation, a decision by the list; nothing else is."""
    pages = {str(page.relative_to(ROOT)) for page in PAGES if page not in _decisions()}
    site = tomllib.loads((ROOT / "zensical.toml").read_text())
    assert sorted(_targets(site["project"]["nav"])) == sorted({*pages, "CHANGELOG.md"})


@each_page
def test_the_site_holds_what_a_page_links(page: Path) -> None:
    """Each relative link leads to a file that `make docs` copies into the source of the site."""
    [copied] = re.findall(r"^SITE := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for link in LINK.findall(prose(page)):
        path = link.partition("#")[0]
        if "://" not in link and path:
            target = (page.parent / path).resolve()
            assert target.is_file(), f"{link}: name a file, since the site has no page for a folder"
            assert target.relative_to(ROOT).parts[0] in copied.split(), link


def _decisions() -> list[Path]:
    return sorted(page for page in DECISIONS.glob("*.md") if page.name != "README.md")


def _title(page: Path) -> str:
    return page.read_text().partition("\n")[0].removeprefix("# ")


def _targets(nav: list[dict[str, Any]]) -> Iterator[str]:
    """Give the files that a navigation names, of all its sections."""
    for item in nav:
        for target in item.values():
            if isinstance(target, str):
                yield target
            else:
                yield from _targets(target)
