"""References to stores: light, without secrets, within the data directory."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

from agentmem.errors import ConfigurationError
from agentmem.memory.references import (
    PROVIDER_MARK,
    ProviderReference,
    in_memory,
    named,
    postgresql,
    provider,
    sqlite,
)


def test_identities() -> None:
    """Each factory gives the name that stands in histories."""
    assert sqlite("notes/research.db").identity == "sqlite:notes/research.db"
    assert postgresql().identity == "postgresql"
    assert postgresql("env:RESEARCH_URL").identity == "postgresql:env:RESEARCH_URL"
    assert named("redis").identity == "named:redis"


def test_a_reference_travels_as_its_identity() -> None:
    """Its JSON is small and comes back equal."""
    reference = sqlite("research.db")
    assert reference.model_dump_json() == '{"identity":"sqlite:research.db"}'
    assert ProviderReference.model_validate_json(reference.model_dump_json()) == reference


@pytest.mark.parametrize("path", ["", "  ", "/abs.db", "../x.db", "a/../../x.db", "x\x00.db"])
def test_paths_stay_in_the_data_directory(path: str) -> None:
    """Empty, absolute and climbing paths are refused where they are written."""
    with pytest.raises(ConfigurationError, match="AGENTMEM_DATA"):
        sqlite(path)


def test_sqlite_in_memory_has_its_own_name() -> None:
    """`:memory:` would be a file of that name; the message says what to write."""
    with pytest.raises(ConfigurationError, match=r"in_memory\(\)"):
        sqlite(":memory:")


@pytest.mark.parametrize(
    "text", ["postgresql://u:pa55word@h/d", "", "env:", "env:A B", "env:1A", "RESEARCH_URL"]
)
def test_a_url_in_workflow_code_is_refused(text: str) -> None:
    """A URL would stand in the history with its password; the message never repeats it."""
    with pytest.raises(ConfigurationError, match="AGENTMEM_DATABASE_URL") as refused:
        postgresql(text)
    assert "pa55word" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a/b", "a:b", "ü"])
def test_names_are_words(name: str) -> None:
    """Names of stores are short and plain."""
    for make in (in_memory, named, provider):
        with pytest.raises(ConfigurationError, match="1 to 64 letters"):
            make(name)


def test_provider_marks_what_makes_a_store() -> None:
    """The decorator leaves the class as it is, with the name on it."""

    @provider("redis")
    class Redis:
        pass

    assert getattr(Redis, PROVIDER_MARK) == "redis"
    assert isinstance(Redis(), Redis)


def test_outside_a_workflow_each_call_is_a_new_store() -> None:
    """Two calls never mean one store, whatever their names."""
    made = [in_memory(), in_memory(), in_memory("x"), in_memory("x")]
    assert len({reference.identity for reference in made}) == 4
    assert all(reference.identity.startswith("in_memory:") for reference in made)


@workflow.defn
class NamesStores:
    """Says which stores it refers to."""

    @workflow.run
    async def run(self) -> list[str]:
        """Refer twice by each name."""
        made = [in_memory(), in_memory(), in_memory("x"), in_memory("x")]
        return [reference.identity for reference in made]


async def test_in_a_workflow_a_name_is_one_store(client: Client, task_queue: str) -> None:
    """Replay and every other workflow of the worker mean the same store by a name."""
    async with Worker(client, task_queue=task_queue, workflows=[NamesStores]):
        options: dict[str, Any] = {"task_queue": task_queue, "run_timeout": timedelta(seconds=20)}
        identities = await client.execute_workflow(NamesStores.run, id=task_queue, **options)
    assert identities == ["in_memory:default"] * 2 + ["in_memory:x"] * 2
