"""The objects that a user's module brings to a worker, and those of its names that are refused."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio import activity, workflow

from agentmem.config.app import App, load_app
from agentmem.errors import ConfigurationError
from agentmem.memory.references import provider
from agentmem.tools import tool

WHOLE = '''
from temporalio import activity, workflow
from agentmem.contracts import model, resolve
from agentmem.memory.references import provider
from agentmem.tools import tool

@tool
def get_weather(city: str) -> str:
    """Say the weather."""
    return f"Sunny in {city}."

alias = get_weather

@provider("redis")
class Redis: ...

@workflow.defn(name="research")
class Research:
    @workflow.run
    async def run(self) -> None: ...

class NotRegistered(Research): ...

@activity.defn(name="fetch_page")
async def fetch() -> None: ...

class Anything:
    """Answers to every attribute, as lazy modules and mocks do."""
    def __getattr__(self, name):
        return self

anything = Anything()
'''


@pytest.fixture
def modules() -> Iterator[None]:
    """Forget the modules that a test imports, and where they came from."""
    known, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]
    sys.path[:] = path


def load(tmp_path: Path, text: str, name: str = "my_app") -> App:
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    return load_app(str(path))


@pytest.mark.usefixtures("modules")
def test_everything_marked_is_collected_once(tmp_path: Path) -> None:
    """Tools, providers, workflows and activities, each by its name; nothing else of the module."""
    app = load(tmp_path, WHOLE)
    assert app.origin == str(tmp_path / "my_app.py")
    assert list(app.tools) == ["get_weather"]
    assert list(app.providers) == ["redis"]
    assert list(app.workflows) == ["research"]
    assert list(app.activities) == ["fetch_page"]


@pytest.mark.usefixtures("modules")
def test_a_module_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dotted name is looked up in the working directory too."""
    (tmp_path / "by_name").mkdir()
    (tmp_path / "by_name" / "tools.py").write_text(WHOLE)
    monkeypatch.chdir(tmp_path)
    assert list(load_app("by_name.tools").tools) == ["get_weather"]


def test_without_a_module_there_is_nothing() -> None:
    """AGENTMEM_APP is optional."""
    assert load_app("") == App()


def test_objects_can_be_given_directly() -> None:
    """A script hands over its own tools and workflows without a module of their own."""

    @tool
    def add(a: int, b: int) -> int:
        return a + b

    assert load_app("", [add, add]).tools == {"add": add}


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nothing_like_this", "ModuleNotFoundError"),
        ("x = 1\ny = x / 0\n", "my_app.py:2: ZeroDivisionError"),
        ("def f(:\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        (
            "from agentmem import tool\n\n\n@tool\ndef store_memory() -> None: ...\n",
            "my_app.py:4: @tool on store_memory: the name 'store_memory' is one of agentmem's own",
        ),
    ],
)
def test_a_module_that_fails_is_told_with_its_place(tmp_path: Path, text: str, reason: str) -> None:
    """The message names the setting, the file with the line, and the error."""
    with pytest.raises(ConfigurationError, match=r"AGENTMEM_APP: cannot import") as caught:
        load(tmp_path, text)
    assert reason in caught.value.message


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A path that leads nowhere is told as such, not as a missing module."""
    with pytest.raises(ConfigurationError, match="there is no file"):
        load_app(str(tmp_path / "my_app.py"))


@pytest.mark.usefixtures("modules")
def test_a_file_hidden_by_another_module_is_refused(tmp_path: Path) -> None:
    """The sandbox imports workflows by name, so a name that leads elsewhere cannot work."""
    with pytest.raises(ConfigurationError, match=r"hidden by .*json"):
        load(tmp_path, WHOLE, name="json")


@pytest.mark.parametrize("name", ["agentmem.model", "memory.recall", "dream.begin", "store_memory"])
def test_our_activities_names_are_refused(name: str) -> None:
    """A user's activity cannot take the place of one of agentmem's own."""

    @activity.defn(name=name)
    async def mine() -> None: ...

    with pytest.raises(ConfigurationError, match=f"{name}.*agentmem's own"):
        load_app("", [mine])


@pytest.mark.parametrize("name", ["default", "in_memory", "sqlite", "postgresql", "named"])
def test_our_providers_names_are_refused(name: str) -> None:
    """A user's provider cannot take the place of one of agentmem's own."""
    with pytest.raises(ConfigurationError, match=f"{name}.*agentmem's own"):
        load_app("", [provider(name)(lambda: None)])


@workflow.defn(name="agent_dream")
class MyDream:
    """A workflow under a name of ours."""

    @workflow.run
    async def run(self) -> None:
        """Do nothing."""


def test_our_workflows_names_are_refused() -> None:
    """A user's workflow cannot take the place of one of agentmem's own."""
    with pytest.raises(ConfigurationError, match=r"agent_dream.*agentmem's own"):
        load_app("", [MyDream])


def test_two_of_one_name_are_refused() -> None:
    """A tool and an activity of one name are one activity too many."""

    @tool
    def fetch() -> str:
        return ""

    @activity.defn(name="fetch")
    async def other() -> None: ...

    with pytest.raises(ConfigurationError, match=r"'fetch' is there twice"):
        load_app("", [fetch, other])


def test_an_app_may_import_the_model_library(
    tmp_path: Path, modules: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting that keeps litellm from fetching a list of prices is there before the app is."""
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    load(tmp_path, 'import os\nassert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"\n')
