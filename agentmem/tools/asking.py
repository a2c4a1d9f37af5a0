"""The tool `ask_user`: a model's question to the user, answered as an approval is.

No activity runs it: the workflow waits. An agent has it where its `tools` list it by name.
"""

from agentmem.contracts.calls import ToolSpec
from agentmem.wire import JSONObject

ASK_USER = ToolSpec(name="ask_user")

ASK_USER_SCHEMA: JSONObject = {
    "type": "function",
    "function": {
        "name": ASK_USER.name,
        "description": "Ask the user a question and wait for the answer. Only for what the user "
        "alone can know or decide, and what the work cannot go on without.",
        "parameters": {
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "description": "One question, to be understood without the conversation.",
                }
            },
            "required": ["question"],
        },
    },
}

NO_QUESTION = "Not asked: `question` must be text, and not blank."
NO_ANSWER = "The user did not answer"


def is_question(name: str, arguments: JSONObject) -> bool:
    """Tell whether a call asks something."""
    question = arguments.get("question")
    return name == ASK_USER.name and isinstance(question, str) and bool(question.strip())
