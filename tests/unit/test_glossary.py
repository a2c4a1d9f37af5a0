"""The glossary names every public class and every table, and a class's name means one thing."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from agentmem.storage.sql.schema import metadata

ROOT = Path(__file__).parents[2]
PACKAGES = ("agentmem", "workflows", "activities")
ROWS = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)


def public_classes() -> dict[str, list[str]]:
    """Return the files of each class without a leading underscore, by its name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(file.relative_to(ROOT)))
    return found


def test_no_two_public_classes_share_a_name() -> None:
    """A reader who meets a name knows which class is meant."""
    classes = public_classes()
    assert {"Message", "AgentWorkflow", "MessageCache"} <= set(classes)
    assert not {name: files for name, files in classes.items() if len(files) > 1}


def test_the_glossary_names_every_public_class_and_no_other() -> None:
    """Each class has one row, in alphabetical order."""
    rows = [name for name in ROWS if name not in metadata.tables]
    classes = set(public_classes())
    assert not classes - set(rows), "these classes have no row in docs/glossary.md"
    assert not set(rows) - classes, "docs/glossary.md names classes that are gone"
    assert rows == sorted(set(rows))


def test_the_glossary_names_every_table() -> None:
    """Each table of the database has one row."""
    tables = [name for name in ROWS if name in metadata.tables]
    assert sorted(tables) == sorted(metadata.tables)
