"""The details of a session that the Temporal UI shows as its current details, in plain lines."""

from agentmem.session import Session


def session_details(session: Session, turns: int) -> str:
    """Return a session's state for people, as a list in Markdown; adds nothing to history."""
    memory, usage = session.memory, session.assistant.usage
    dream = session.background.last_dream
    lines = [
        f"Agent: {session.definition.name}, model {session.definition.model}",
        f"Turns: {turns}",
        f"Tokens in view at the last call: {memory.prompt_tokens or 'not known'}",
        f"Tokens in all: {usage.prompt} in, {usage.completion} out, {usage.requests} model calls",
        f"Cost: {usage.cost:.4f} US dollars" if usage.cost else "Cost: no price known",
        f"Summaries: {memory.summaries}",
        f"Last dream: started {dream:%Y-%m-%d %H:%M} UTC" if dream else "Last dream: none yet",
    ]
    lines += [f"Waits for a person: {line}" for line in session.assistant.approvals.lines()]
    return "\n".join(f"- {line}" for line in lines)
