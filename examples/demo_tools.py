"""The tool of the demo's agent, which `AGENTMEM_APP` brings to the worker."""

import asyncio

from agentmem import tool

_WEATHER = {"Lisbon": "24 degrees and sunny", "Porto": "19 degrees, light rain"}


@tool
async def get_weather(city: str) -> str:
    """Tell the weather in a city.

    Args:
        city: The city's name.
    """
    await asyncio.sleep(0.5)  # about as long as a weather service takes
    return _WEATHER.get(city, "11 degrees, clouds")
