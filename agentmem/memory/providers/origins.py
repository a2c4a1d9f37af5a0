"""The known metadata of facts whose store keeps their values alone, in the worker's own store.

The own store holds a fact of the same key there, whose value is a digest of the real one: with its
state, trust, times, writer and evidence. If the real value was changed behind our back, the digest
is another one, and what is kept no longer applies.
"""

from collections.abc import Mapping, Sequence

from agentmem.facts import Fact, Trust, Write
from agentmem.memory.providers.checks import OwnAgent
from agentmem.memory.providers.protocol import TransactionalProvider
from agentmem.values import JSONValue


class Origins:
    """The known metadata of the facts of one scope.

    Args:
        own: The worker's own store.
        agent: The agent of our own that stands for the user's.
        scope: The scope.
    """

    def __init__(self, own: TransactionalProvider, agent: OwnAgent, scope: str) -> None:
        self._own = own
        self._at = (agent, scope)

    async def tell(self, values: Mapping[str, JSONValue], digests: Mapping[str, int]) -> list[Fact]:
        """Return facts with what is known of them; of unknown origin where nothing is.

        Args:
            values: Their values, by key.
            digests: The digest of each value, by key; it is the fact's version too.
        """
        known = await self._known(digests)
        return [
            known.get(key, Fact(key=key, writer="unknown")).replace(value=value, version=digest)
            for (key, value), digest in zip(values.items(), digests.values(), strict=True)
        ]

    async def witnesses(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return these facts with the messages that they rest on."""
        known = await self._known({fact.key: fact.version for fact in facts})
        versions = {key: fact.version for key, fact in known.items()}
        whole = {fact.key: fact.evidence for fact in await self._own.facts_at(*self._at, versions)}
        return [fact.replace(evidence=whole.get(fact.key, [])) for fact in facts]

    async def note(self, write: Write, digest: int) -> None:
        """Keep what a write says of a fact, before its value is stored."""
        await self._own.write(*self._at, [write.replace(value=digest)])

    async def confirm(self, write: Write, digest: int) -> None:
        """Add the evidence of a confirmation to a fact that is there with this digest."""
        known = await self._known({write.key: digest})
        if not known or known[write.key].version != await self._newest(write.key):
            fact = known.get(write.key, Fact(key=write.key, trust=Trust.USER, writer="unknown"))
            said = {name: getattr(fact, name) for name in Fact.model_fields}
            await self.note(Write.model_validate(said), digest)
        await self._own.write(*self._at, [write])

    async def drop(self, keys: Sequence[str]) -> None:
        """Let go of what is known of keys whose values have gone."""
        await self._own.write(*self._at, [Write(op="remove", key=key) for key in keys])

    async def _known(self, digests: Mapping[str, int]) -> dict[str, Fact]:
        """Return what is kept of these keys, where it is about the value with that digest."""
        kept = {fact.key: fact for fact in await self._own.entries(*self._at, list(digests))}
        # Of a write whose value never reached the other store, what was known before applies.
        other = {key: fact.version - 1 for key, fact in kept.items() if fact.value != digests[key]}
        before = await self._own.facts_at(*self._at, other) if other else []
        kept |= {fact.key: fact for fact in before}
        return {key: fact for key, fact in kept.items() if fact.value == digests[key]}

    async def _newest(self, key: str) -> int:
        return next((one.version for one in await self._own.entries(*self._at, [key])), 0)
