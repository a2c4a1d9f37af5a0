"""The agents' file: what it gives, and how its mistakes are told."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from agentmem.config.agents_file import (
    AgentTable,
    DreamLimitsTable,
    DreamTable,
    PhaseTable,
    RunLimitsTable,
    WorkingMemoryTable,
    line_of,
    read_agents,
)
from agentmem.contracts import (
    Definition,
    DreamLimits,
    DreamSettings,
    MemorySettings,
    PhaseSettings,
    ToolSpec,
)
from agentmem.errors import ConfigurationError

WEATHER = ToolSpec(name="get_weather")


def read(tmp_path: Path, text: str) -> dict[str, Definition]:
    path = tmp_path / "agentmem.toml"
    path.write_text(text)
    return read_agents(path, tools={"get_weather": WEATHER}, providers=["redis"])


def mistakes(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, text)
    return [line.removeprefix(f"{tmp_path}/") for line in caught.value.message.splitlines()]


def test_an_assistant_is_there_without_a_file() -> None:
    """The built-in assistant has long-term memory and dreams, and the worker's default model."""
    [assistant] = read_agents(None, tools={}, providers=[]).values()
    assert assistant.name == "assistant"
    assert assistant.model == ""
    assert assistant.long_term_memory == "default"
    assert assistant.dream == DreamSettings(on=["end", "idle"], idle_minutes=10)


def test_a_files_assistant_replaces_the_built_in_one(tmp_path: Path) -> None:
    """The file's fields of `assistant` are all that holds; without any, it stays built in."""
    assert read(tmp_path, "")["assistant"].long_term_memory == "default"
    own = read(tmp_path, '[agents.assistant]\nsystem_prompt = "Rhyme."\n')["assistant"]
    assert own == Definition(name="assistant", system_prompt="Rhyme.", model="")


def test_every_field_arrives(tmp_path: Path) -> None:
    """Each field of the file stands in the definition."""
    agents = read(
        tmp_path,
        """
        [agents.all]
        system_prompt = "S"
        model = "openai/gpt-5"
        tools = ["get_weather"]
        max_tool_calls = 3
        max_concurrent_tools = 2
        max_tokens = 100
        reasoning_effort = "low"
        budget = 1_000
        turn_budget = 500
        approve = ["get_weather", "store_memory"]
        approval_minutes = 5
        turn_minutes = 6
        reply_minutes = 0.5
        stream = true
        response_format = { type = "object" }
        [agents.all.working_memory]
        window = 5
        max_tokens = 60
        compact_model = "m"
        compact_threshold = 0.5
        compact_preserve = 1
        [agents.all.long_term_memory]
        provider = "sqlite:facts.db"
        [agents.all.dream]
        on = ["complete", "pause"]
        idle_minutes = 0.5
        model = "d"
        workflow = "my_dream"
        limits = { orient = 1, gather_signal = 2, consolidate = 3, prune = 4, keys = 5 }
        phases.orient.attempts = 1
        phases.verify.model = "judge"
        [agents.all.dream.phases.gather_signal]
        model = "large"
        minutes = 2
        """,
    )
    assert agents["all"] == Definition(
        name="all",
        system_prompt="S",
        model="openai/gpt-5",
        tools=[WEATHER],
        max_tool_calls=3,
        max_concurrent_tools=2,
        max_tokens=100,
        reasoning_effort="low",
        budget=1000,
        turn_budget=500,
        approve=["get_weather", "store_memory"],
        approval_minutes=5,
        turn_minutes=6,
        reply_minutes=0.5,
        stream=True,
        response_format={"type": "object"},
        working_memory=MemorySettings(
            window=5, max_tokens=60, compact_model="m", compact_threshold=0.5, compact_preserve=1
        ),
        long_term_memory="sqlite:facts.db",
        dream=DreamSettings(
            on=["complete", "pause"],
            idle_minutes=0.5,
            model="d",
            workflow="my_dream",
            limits=DreamLimits(orient=1, gather_signal=2, consolidate=3, prune=4, keys=5),
            phases={
                "orient": PhaseSettings(attempts=1),
                "gather_signal": PhaseSettings(model="large", minutes=2),
                "verify": PhaseSettings(model="judge"),
            },
        ),
    )


def test_three_combinations_of_memory(tmp_path: Path) -> None:
    """Working memory alone, with long-term memory, and with dreams."""
    agents = read(
        tmp_path,
        """
        [agents.short]
        [agents.long.long_term_memory]
        [agents.dreaming]
        long_term_memory = {}
        dream = {}
        """,
    )
    assert (agents["short"].long_term_memory, agents["short"].dream) == ("", None)
    assert (agents["long"].long_term_memory, agents["long"].dream) == ("default", None)
    assert agents["dreaming"].dream == DreamSettings()


def test_a_working_memory_is_bounded_whatever_the_file_leaves_out(tmp_path: Path) -> None:
    """An agent's prompt takes at most 50,000 tokens where the file says nothing else."""
    agents = read(tmp_path, "[agents.a]\n[agents.b]\nworking_memory.window = 9\n")
    assert agents["a"].working_memory.max_tokens == 50_000
    assert agents["b"].working_memory == MemorySettings(window=9, max_tokens=50_000)


@pytest.mark.parametrize(
    ("written", "identity"),
    [
        ("default", "default"),
        ("in_memory", "in_memory:default"),
        ("in_memory:tests", "in_memory:tests"),
        ("sqlite:a/b.db", "sqlite:a/b.db"),
        ("postgresql", "postgresql"),
        ("postgresql:env:FACTS_URL", "postgresql:env:FACTS_URL"),
        ("redis", "named:redis"),
        ("named:redis", "named:redis"),
    ],
)
def test_providers_are_written_as_they_are_called(
    tmp_path: Path, written: str, identity: str
) -> None:
    """A provider is written by its kind, or by the name under which it is registered."""
    text = f'[agents.a.long_term_memory]\nprovider = "{written}"\n'
    assert read(tmp_path, text)["a"].long_term_memory == identity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[agents.a]\nmodel = 3\n", "2: agents.a.model: input should be a valid string, not 3"),
        ("[agents.a]\ntools = 'x'\n", "2: agents.a.tools: input should be a valid list, not 'x'"),
        (
            "[agents.a]\nmodel = ''\n\nmax_tokens = 0\n",
            "4: agents.a.max_tokens: input should be greater than or equal to 1, not 0",
        ),
        (
            "[agents.a]\ntools = [\n 'get_weather',\n 'get_wether',\n]\n",
            "2: agents.a.tools: no tool 'get_wether'; there are get_weather; AGENTMEM_APP names",
        ),
        (
            "[agents.a.long_term_memory]\nprovider = 'mongo'\n",
            "2: agents.a.long_term_memory.provider: no provider 'mongo'; there are default,",
        ),
        (
            "[agents.a]\n[agents.a.dream]\non = ['end']\n",
            "2: agents.a.dream: a dream needs [agents.a.long_term_memory] to write to",
        ),
        (
            "[agents.a.dream]\non = ['end', 'never']\n",
            "2: agents.a.dream.on.1: input should be 'end', 'idle', 'complete', 'pause' or",
        ),
        (
            "[agents.a.dream.limits]\nprune = 3\ndrune = 3\n",
            "3: agents.a.dream.limits.drune: unknown field; there are orient, gather_signal",
        ),
        (
            "[agents.a.dream]\nidle_minutes = inf\n",
            "2: agents.a.dream.idle_minutes: input should be a finite number",
        ),
        (
            "[agents.a.dream]\nidle_minutes = 1e308\n",
            "2: agents.a.dream.idle_minutes: input should be less than or equal to 525600",
        ),
        (
            "[agents.a]\napprove = ['get_weather']\n",
            "2: agents.a.approve: the agent has no tool 'get_weather'; it has none",
        ),
        (
            "[agents.a.response_format]\ntype = 'objekt'\n",
            "1: agents.a.response_format: response_format is no JSON schema",
        ),
        ("[agents.a.dream]\nidle_minutes = 0\n", "2: agents.a.dream.idle_minutes: input should be"),
        ("agent = 1\n", "1: agent: unknown field; there are agents"),
        (
            "[agents.'a b']\n",
            "1: agents.a b: an agent's name is 1 to 64 letters, digits, '_', '-' or '.'",
        ),
        (
            "[agents.a.dream.phases.gather]\nattempts = 1\n",
            "1: agents.a.dream.phases.gather: no such phase; there are orient, gather_signal,",
        ),
        (
            "[agents.a.dream.phases.orient]\ntries = 1\n",
            "2: agents.a.dream.phases.orient.tries: unknown field; there are model, attempts, min",
        ),
        (
            "[agents.a.dream.phases.orient]\nattempts = 9\n",
            "1: agents.a.dream.phases: The four phases may take 90 minutes, a dream has 70 for",
        ),
        (
            "[agents.a.dream.phases.verify]\nmodel = 'm'\nminutes = 5\n",
            "1: agents.a.dream.phases: The verification runs within its phases, whose attempts and",
        ),
        (
            "[agents.a.dream.limits]\npatience_hours = 169\n",
            "2: agents.a.dream.limits.patience_hours: input should be less than or equal to 168",
        ),
        ("[agents]\na = 1\n", "2: agents.a: input should be a table, not 1"),
        ("[agents.a]\nrun_limits = 3\n", "2: agents.a.run_limits: input should be a table, not 3"),
        (
            "[agents.a]\napprove = 'some'\n",
            "2: agents.a.approve: give a list of tools or 'all', not 'some'",
        ),
    ],
)
def test_a_mistake_is_told_with_file_line_and_field(
    tmp_path: Path, text: str, expected: str
) -> None:
    """A wrong field is refused with its place, and with what exists."""
    [mistake] = mistakes(tmp_path, text)
    assert mistake.startswith(f"agentmem.toml:{expected}")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """One start of the worker shows every mistake of the file, in order of lines."""
    found = mistakes(tmp_path, "[agents.a]\nmodle = 'x'\n\n[agents.b]\nmax_tool_calls = -1\n")
    assert [line.split(":")[1] for line in found] == ["2", "5"]


def test_paths_may_not_escape_the_data_directory(tmp_path: Path) -> None:
    """A SQLite path in the file stays under AGENTMEM_DATA, as everywhere."""
    [mistake] = mistakes(tmp_path, "[agents.a.long_term_memory]\nprovider='sqlite:../x'\n")
    assert "2: agents.a.long_term_memory.provider" in mistake
    assert "AGENTMEM_DATA" in mistake


def test_a_file_that_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    """The parser's own message has the line."""
    [mistake] = mistakes(tmp_path, "[agents.a]\nmodel = \n")
    assert "agentmem.toml" in mistake
    assert "line 2" in mistake


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A path that leads nowhere names the setting."""
    with pytest.raises(ConfigurationError, match="AGENTMEM_AGENTS"):
        read_agents(tmp_path / "no.toml", tools={}, providers=[])


def test_the_commented_example_is_valid() -> None:
    """examples/agentmem.toml shows every field with its default."""
    example = Path("examples/agentmem.toml")
    agents = read_agents(example, tools={}, providers=[])
    research = agents["research_assistant"]
    assert research == Definition(
        name="research_assistant",
        system_prompt=research.system_prompt,
        model="",
        long_term_memory="default",
        dream=DreamSettings(phases={"gather_signal": PhaseSettings(), "verify": PhaseSettings()}),
    )


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("", AgentTable),
        (".working_memory", WorkingMemoryTable),
        (".run_limits", RunLimitsTable),
        (".dream", DreamTable),
        (".dream.limits", DreamLimitsTable),
        (".dream.phases.gather_signal", PhaseTable),
    ],
)
def test_the_commented_example_lacks_no_field(table: str, fields: type[BaseModel]) -> None:
    """examples/agentmem.toml has a line or a table for each field, some of them as comments."""
    example = Path("examples/agentmem.toml").read_text()
    head = f"[agents.research_assistant{table}]"
    lines = example.partition(f"{head}\n")[2].partition("\n[")[0]
    for name in fields.model_fields:
        sub = f"{head[:-1]}.{name}"
        assert re.search(rf"^(# )?{name} = ", lines, re.MULTILINE) or sub in example, name


LINES = '''\
# a comment
[agents.a]
prompt = """first
model = 3
"""
tools = [
  "x",
]
dream.limits.orient = 4
memory = { window = 1 }

["agents"."b.c"]
model = "m"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("agents a", 2),
        ("agents a prompt", 3),
        ("agents a tools", 6),
        ("agents a dream limits orient", 9),
        ("agents a memory window", 10),
        ("agents b.c model", 13),
        ("agents b.c nothing", 12),
        ("nothing", 1),
    ],
)
def test_a_field_is_found_however_it_is_written(path: str, line: int) -> None:
    """Long strings, arrays, dotted keys, inline tables and quoted keys lead to the right line."""
    assert line_of(LINES, path.split(" ")) == line
