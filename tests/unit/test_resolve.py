"""The definition of an agent, as the worker resolves it once a session."""

from pathlib import Path

import pytest

from activities.agents import AgentActivities
from agentmem import tool
from agentmem.config.agents_file import ASSISTANT
from agentmem.contracts import Definition, Resolve
from agentmem.errors import ConfigurationError
from agentmem.storage.registry import Providers
from agentmem.tools.toolbox import ToolBox


@tool(approval=True)
def send_mail(to: str) -> str:
    """Send a mail."""
    return to


@pytest.fixture
def agents(tmp_path: Path) -> AgentActivities:
    own = Definition(name="own", model="openai/own", long_term_memory="in_memory:x")
    return AgentActivities(
        agents={"assistant": ASSISTANT, "own": own},
        toolbox=ToolBox([send_mail]),
        providers=Providers(tmp_path, None, {"redis": object}),
        model="the/default",
    )


@pytest.mark.parametrize(
    ("request_", "model"),
    [
        (Resolve(agent="assistant"), "the/default"),
        (Resolve(agent="own"), "openai/own"),
        (Resolve(), "the/default"),
        (Resolve(model="code/model"), "code/model"),
    ],
)
async def test_the_model_is_the_nearest_one(
    agents: AgentActivities, request_: Resolve, model: str
) -> None:
    """Code or the agents' file first, then the worker's default; never empty in a history."""
    assert (await agents.resolve(request_)).model == model


async def test_the_default_provider_is_settled(agents: AgentActivities) -> None:
    """`default` becomes the store behind it, so that a session keeps its store for good."""
    assert (await agents.resolve(Resolve(agent="assistant"))).long_term_memory == "sqlite:memory.db"
    assert (await agents.resolve(Resolve(agent="own"))).long_term_memory == "in_memory:x"
    assert (await agents.resolve(Resolve())).long_term_memory == ""


async def test_tools_of_an_agent_in_code_are_looked_up(agents: AgentActivities) -> None:
    """Workflow code names tools; how they behave comes from the worker that has them."""
    found = await agents.resolve(Resolve(tools=["send_mail", "recall_memory"]))
    assert [(spec.name, spec.approval) for spec in found.tools] == [
        ("send_mail", True),
        ("recall_memory", False),
    ]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Resolve(agent="nobody"), r"'nobody'; this worker has assistant, own.*AGENTMEM_AGENTS"),
        (Resolve(tools=["send_male"]), r"'send_male'; this worker has .*send_mail"),
        (Resolve(provider="named:mongo"), r"'mongo'.*named:redis"),
        (Resolve(provider="sqlite:../x"), r"\.\./x"),
    ],
)
async def test_what_does_not_exist_is_named_and_never_retried(
    agents: AgentActivities, request_: Resolve, message: str
) -> None:
    """The error says what is missing and what there is; a retry would not mend it."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        await agents.resolve(request_)
    assert caught.value.non_retryable
