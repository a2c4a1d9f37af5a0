"""What is said in the demo, and what must come of it; no model sees more of this than the turns."""

from dataclasses import dataclass

AGENT = "assistant"
SCOPE = "ada"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message of the user's.

    Attributes:
        says: The message.
        expects: What the offline model's answer must hold.
        crash_after: Kill the worker in the model call after this tool.
    """

    says: str
    expects: str = ""
    crash_after: str = ""


KNOWN = {
    "breakfast_drink": "Oat milk coffee without sugar",
    "coffee_order": "Oat milk coffee without sugar",
    "home_city": "Lives in Bergen",
}
"""Facts that are there before the first session: two of them say the same."""

FIRST_SESSION = [
    Turn(says="Hi! My name is Ada and I work as a product designer.", expects="Ada"),
    Turn(says="What do you know about me?", expects="Bergen"),
    Turn(says="We decided to hold the team offsite in Lisbon.", expects="Lisbon"),
    Turn(says="The budget for the offsite is 9000 euros.", expects="9000"),
    Turn(says="What is the weather in Lisbon and Porto?", expects="19 degrees"),
    Turn(says="Please remember that I am allergic to peanuts.", expects="allergy_peanuts"),
    Turn(says="By the way, I moved to Oslo yesterday.", expects="Oslo"),
    Turn(says="What is the weather in Oslo?", expects="11 degrees", crash_after="get_weather"),
    Turn(says="Where do I live now?", expects="Oslo"),
    Turn(says="Actually, the budget for the offsite is 7500 euros.", expects="7500"),
    Turn(says="What is the budget for the offsite?", expects="7500"),
    Turn(says="Our flight to Lisbon is tomorrow.", expects="flight to Lisbon"),
    Turn(says="I really love flights at five in the morning 🙃"),
    Turn(says="Thanks, that is all for today!", expects="welcome"),
]

SECOND_SESSION = [
    Turn(says="Where do I live?", expects="Oslo"),
    Turn(says="What is the budget for the offsite?", expects="7500"),
    Turn(says="When is our flight to Lisbon?", expects="Lisbon is on 20"),
]

LEARNED = {
    "user_name": "Ada",
    "work_role": "product designer",
    "home_city": "Oslo",
    "budget_offsite": "7500",
    "flight_lisbon": "is on 20",
    "allergy_peanuts": "peanuts",
}
"""What the facts hold after the offline model's dream, by key."""

JOKE = "flights at five"
"""What the offline model takes for a preference, and its verification stops."""

REPLACED = ("Bergen", "9000", "yesterday", "tomorrow")
"""What no fact says after it: corrected, or true for a day only."""
