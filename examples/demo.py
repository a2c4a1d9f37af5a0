"""An agent talks, its worker crashes, it dreams, and it remembers: a demo in a minute.

Run `make demo`, or `make demo KEEP=1` to look around afterwards. All of it is real: a Temporal
server and a worker as processes, a SQLite file, in a temporary directory. Without AGENTMEM_MODEL
the offline model answers, and what is shown is checked.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import demo_facts
from demo_crash import first_calls, model_calls, show_cost
from demo_dream import Dream, dream_of, watch
from demo_screen import Screen
from demo_script import AGENT, FIRST_SESSION, SCOPE, SECOND_SESSION
from demo_stage import Stage, stage
from demo_talk import Talk
from demo_worker import DemoFailed

from agentmem import AgentInput, AgentMemError
from agentmem.contracts import TASK_QUEUE
from agentmem.settings import OFFLINE_MODEL, load_settings


async def demo(*, keep: bool) -> None:
    """Play the demo.

    Args:
        keep: Leave server and worker up at the end, until Ctrl-C.

    Raises:
        DemoFailed: It could not be played, or a check failed.
    """
    _let_sigterm_cancel()
    began = time.monotonic()
    model = load_settings().default_model(dev=True)
    screen = Screen(checking=model == OFFLINE_MODEL)
    offline = ", because AGENTMEM_MODEL is not set: fixed rules, no language model"
    screen.say(f"Answers come from {model}{offline if model == OFFLINE_MODEL else ''}.", "bold")
    with TemporaryDirectory(prefix="agentmem-demo-") as folder:
        async with stage(Path(folder), model, screen, keep=keep) as at:
            talk = await _play(at)
            waited = sum(call.seconds for call in first_calls(await model_calls(talk.session)))
            screen.say(
                f"\nDone in {time.monotonic() - began:.0f} s, {waited:.0f} s of them in the first "
                "model calls of the two workers, which wait for the model library.",
                "bold",
            )
            if keep:
                await _stay(at)
    if screen.failed:
        raise DemoFailed(f"this did not hold: {'; '.join(screen.failed)}")


async def _play(at: Stage) -> Talk:
    first = await _first_session(at)
    before = await demo_facts.read(at.store, first.messages)
    dream = await _dream(at, first)
    after = await demo_facts.read(at.store, first.messages)
    at.screen.title("Long-term memory: the facts before the dream and after it")
    demo_facts.show("Before", before, at.screen)
    demo_facts.show("After (+ new, ~ changed)", after, at.screen, before)
    demo_facts.show_verified(after, at.screen)
    demo_facts.check(after, at.screen)
    second = await _second_session(at)
    at.screen.title("In the Temporal UI, while the server is up (make demo KEEP=1 leaves it up)")
    handles = {"session one": first.session, "its dream": dream, "session two": second.session}
    for name, handle in handles.items():
        at.screen.link(name, await at.address(handle))
    return first


async def _first_session(at: Stage) -> Talk:
    at.screen.title("Session one: a Temporal workflow, each message an update of it")
    await demo_facts.plant(at.store)
    at.screen.row("worker", "loading the model library (litellm); the first answer waits for it")
    talk = await _start(at, "demo-one")
    await talk.hold(FIRST_SESSION)
    if talk.crash is None:
        raise DemoFailed("every model call ended before the worker could be killed; run it again")
    at.screen.title("What the crash cost")
    await show_cost(talk.session, talk.crash, talk.messages, at.screen)
    return talk


async def _dream(at: Stage, talk: Talk) -> Dream:
    at.screen.title("The session ends, and a dream begins")
    await talk.session.execute_update("end")
    dream = await dream_of(at.server.client, talk.session)
    turns = (await talk.session.result())["turns"]
    at.screen.row("session one", f"has ended after {turns} turns")
    at.screen.row("dream", f"{dream.id}, a child that outlives it")
    report = await watch(dream, at.worker, at.screen)
    changes = ", ".join(f"{number} {status}" for status, number in report.changes.items())
    at.screen.row("commit", f"one transaction, changes: {changes}", style="magenta")
    at.screen.row(
        "took",
        f"{report.usage.requests} model requests, "
        f"{report.usage.prompt + report.usage.completion:,} tokens",
    )
    stopped = [line for line in report.held if "verification: not said" in line]
    for line in stopped:
        at.screen.row("stopped", line, style="yellow")
    at.screen.check(len(stopped) == 1, "the verification stopped what was said as a joke")
    at.screen.check(report.status == "completed_with_rejections", f"the dream is {report.status}")
    return dream


async def _second_session(at: Stage) -> Talk:
    at.screen.title("Session two: a new workflow, an empty conversation, the same facts")
    talk = await _start(at, "demo-two")
    await talk.hold(SECOND_SESSION)
    await talk.session.execute_update("end")
    dream = await dream_of(at.server.client, talk.session)
    at.screen.row("its dream", f"ends with status {(await dream.result()).status}")
    return talk


async def _start(at: Stage, name: str) -> Talk:
    session = await at.server.client.start_workflow(
        "agent",
        AgentInput(agent=AGENT, scope=SCOPE, session=True),
        id=name,
        task_queue=TASK_QUEUE,
    )
    return Talk(session, at.worker, at.screen)


async def _stay(at: Stage) -> None:
    at.screen.title("Look around: server and worker stay up until Ctrl-C")
    at.screen.link("UI", at.server.ui)
    at.screen.row("ask on", "in another terminal:")
    at.screen.say(
        f"  .venv/bin/temporal workflow execute --address {at.server.address} --type agent \\\n"
        f"    --task-queue {TASK_QUEUE} --workflow-id hello \\\n"
        f"""    --input '{{"scope": "{SCOPE}", "message": "Where do I live?"}}'"""
    )
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()


def _let_sigterm_cancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _run(*, keep: bool) -> int:
    try:
        asyncio.run(demo(keep=keep))
    except (DemoFailed, AgentMemError) as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Play the demo.")
    parser.add_argument("--keep", action="store_true", help="leave server and worker up")
    code = _run(keep=parser.parse_args().keep)
    sys.stdout.flush()
    # Threads of the SDK may still touch the interpreter while it shuts down, which aborts it.
    os._exit(code)
