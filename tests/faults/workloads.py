"""The talk that a fault strikes: sessions, one answer, a workflow of one's own."""

import asyncio

from tests.faults.site import Site

LONG = "run_limits.events = 24\n"
"""A session that goes on in a new run after about two turns."""

COMPACTING = (
    "working_memory = {max_tokens = 60, compact_model = 'openai/summariser', "
    "compact_threshold = 0.5, compact_preserve = 2}\n"
)
"""A session that summarises what is older than two messages."""

CAREFUL = 'approve = ["note"]\napproval_minutes = 5\n'
"""An agent whose tool needs a person's approval."""


async def talk(site: Site) -> None:
    """Hold a session of three turns, the second with a tool call; end it."""
    session = await site.start(session=True)
    await site.say(session)
    await site.say(session, f"[note] {site.word()}")
    await site.here("between two turns")
    await site.say(session)
    await site.end(session)


async def talk_long(site: Site) -> None:
    """Hold a session of eight turns, which goes on in new runs; end it."""
    session = await site.start(session=True)
    for _ in range(8):
        await site.say(session)
    await site.end(session)


async def talk_at_once(site: Site) -> None:
    """Hold a session of four clients that never leave it quiet; end it."""
    session = await site.start(session=True)

    async def client(name: int) -> None:
        for turn in range(6):
            await site.say(session, f"My cat is named c{name}x{turn}.")

    await asyncio.gather(*(client(name) for name in range(4)))
    await site.end(session)


async def talk_and_approve(site: Site) -> None:
    """Hold a session whose tool call waits for a person, who approves; end it."""
    session = await site.start(session=True)
    await site.say(session)
    asked = asyncio.create_task(site.say(session, f"[note] {site.word()}"))
    waiting = await site.status(session, lambda status: status["approvals"])
    await site.here("an approval is open")
    if waiting and not site.ended:
        await site.approve(session, waiting["approvals"][0]["call"])
    await asked
    await site.say(session)
    await site.end(session)


async def answer(site: Site) -> None:
    """Have one question answered: the session of a single turn, which dreams."""
    text = site.word()
    site.sent.append(text)
    run = await site.start(message=text)
    await site.answered(run, lambda result: {text: result})


async def own(site: Site) -> None:
    """Run a workflow of one's own that asks twice and dreams after each answer."""
    said = [f"My cat is named own{number}." for number in range(2)]
    site.sent += said
    run = await site.start("Diary", site.scope, said)
    await site.answered(run, lambda _: {text: f"re: {text}" for text in said})


async def hand_over(site: Site) -> None:
    """Hold a session that ends while its store hangs, so that a child brings its words."""
    session = await site.start(session=True)
    await site.say(session)
    await site.say(session)
    async with site.hung():
        await site.end(session)
        if not site.halt.place.startswith("after"):  # which it gets to when the store is back
            async with asyncio.timeout(60):
                await site.halt.reached()
