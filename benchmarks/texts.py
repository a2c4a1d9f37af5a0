"""The texts of users and tools in the benchmarks; the module imports nothing: floors can use it."""

PAGE_BYTES = 1_000


CITIES = ("Lisbon", "Oslo", "Riga", "Graz", "Turin", "Ghent", "Porto", "Lille", "Split", "Cork")


def question(number: int, tools: int = 0, size: int = 1_000, *, fact: bool = False) -> str:
    """Return a user's message.

    Args:
        number: Of the turn.
        tools: How many tools the model is to call at once before it answers.
        size: Characters of this message and of the answer.
        fact: Whether it says something that a dream keeps.
    """
    said = f" My project number {number} is in {CITIES[number % len(CITIES)]}. " if fact else " "
    return f"turn {number} tools {tools} size {size}{said}".ljust(size, "x")


def asked(text: str) -> tuple[int, int]:
    """Return how many tools a message asks for, and how long an answer."""
    words = text.split()
    return int(words[3]), int(words[5])


def page_text(page: int) -> str:
    """Return what the tool `look_up` reads."""
    return f"page {page} ".ljust(PAGE_BYTES, "p")
