"""The imports that users may rely on: the top level, and the deep paths that the documents name.

A name that fails here was renamed, moved or removed, which breaks users' code. A new name goes into
the list. A path that moves needs a line in the changelog that says where it went.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentmem

ROOT = Path(__file__).parents[2]

TOP_LEVEL = {
    "AgentInput",
    "AgentMemError",
    "Answer",
    "Assistant",
    "ConfigurationError",
    "ContextOverflow",
    "DreamFailed",
    "DreamInput",
    "DreamLimits",
    "DreamReport",
    "DreamWorkflow",
    "InvalidFact",
    "InvalidInput",
    "LongTermMemory",
    "MemoryProvider",
    "ModelCallError",
    "ModelUnavailable",
    "PhaseSettings",
    "ProviderError",
    "RollingOver",
    "SessionBusy",
    "StoreUnavailable",
    "ToolError",
    "TransactionalProvider",
    "TurnFailed",
    "WorkingMemory",
    "agent",
    "dream",
    "in_memory",
    "long_term_memory",
    "named",
    "postgresql",
    "provider",
    "redact",
    "sqlite",
    "tool",
    "working_memory",
}

DEEP_PATHS = {
    "agentmem.client": {"ask", "connect"},
    "agentmem.contracts": {"ScopeRef", "TASK_QUEUE"},
    "agentmem.deadline": {"within"},
    "agentmem.dev_server": {"DevServer", "dev_server"},
    "agentmem.dreaming.review": {"apply", "discard", "reset_gate", "undecided"},
    "agentmem.dreaming.hook": {"dream_id"},
    "agentmem.facts": {"Fact"},
    "agentmem.storage.registry": {"Providers"},
    "agentmem.offline.model": {"answer", "litellm_provider"},
    "agentmem.settings": {"OFFLINE_MODEL", "load_settings"},
    "agentmem.testing": {
        "Call",
        "Reply",
        "Request",
        "ScriptedModel",
        "call",
        "fail",
        "hang",
        "reply",
        "reset",
    },
    "agentmem.testing.ollama": {"as_openai"},
    "agentmem.testing.strict": {"violations"},
    "agentmem.wire": {"JSONObject"},
    "worker": {"local", "running"},
}
"""What README.md, docs/ and examples/ import or name, by module."""

_PYTHON_BLOCK = re.compile(r"^([ ]*)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def documented_imports() -> Iterator[tuple[str, str, str]]:
    """Yield the page, module and name of each import of agentmem or the worker that users read."""
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*"), *(ROOT / "examples").rglob("*")):
        if page.suffix == ".py":
            sources = [page.read_text()]
        elif page.suffix == ".md":
            blocks = _PYTHON_BLOCK.findall(page.read_text())
            sources = [re.sub(f"^{indent}", "", text, flags=re.M) for indent, text in blocks]
        else:
            continue
        for source in sources:
            flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            for node in ast.walk(compile(source, str(page), "exec", flags)):
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    package = node.module.partition(".")[0]
                    if package in ("agentmem", "worker"):
                        yield from ((page.name, node.module, name.name) for name in node.names)


def test_the_top_level_holds_its_names() -> None:
    """`from agentmem import ...` gives each name, and `__all__` lists exactly these."""
    assert set(agentmem.__all__) == TOP_LEVEL
    assert not [name for name in TOP_LEVEL if not hasattr(agentmem, name)]


@pytest.mark.parametrize("path", DEEP_PATHS)
def test_a_deep_path_holds_its_names(path: str) -> None:
    """Each module that the documents name is there, with what they take from it."""
    module = importlib.import_module(path)
    assert not [name for name in DEEP_PATHS[path] if not hasattr(module, name)]


def test_what_the_documents_import_is_in_the_lists() -> None:
    """An import that a page or an example shows to users is held by the lists above."""
    held = {"agentmem": TOP_LEVEL, **DEEP_PATHS}
    found = list(documented_imports())
    assert {"agentmem", "agentmem.client", "agentmem.testing", "worker"} <= {m for _, m, _ in found}
    assert not [row for row in found if row[2] not in held.get(row[1], set())]
