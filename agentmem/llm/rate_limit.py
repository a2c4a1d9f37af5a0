"""The rate at which a worker asks a model: learned from its provider, shared by all callers.

A provider that limits the rate of requests says so by refusing some (HTTP 429). If each caller
waited and came back by itself, most requests would be refused, and some callers would never get
through. Here they share one limit per model: a refusal stops all of them for the time that the
provider asked for, slows down what follows, and what is served lets it grow again. Turns go before
dreams.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from logging import getLogger

FIRST_RATE = 20.0
"""Requests per second before anything is known; twice as many every half second without refusal."""

FIRST_BURST = 4.0
"""Requests that may be sent at once before anything is known."""

LEAST_RATE = 1 / 30
"""Requests per second that are always tried."""

UNLIMITED = 1_000.0
"""Requests per second above which nothing is held back."""

FORGOTTEN_AFTER = 300.0
"""Seconds without a refusal after which what was learned no longer counts."""

LONGEST_GUESS = 60.0
"""Seconds of the longest wait that no provider asked for."""

DREAMS_SHARE = 10
"""Every so many requests one is a dream's, while turns wait too: a dream is slow, never stopped."""

_CUT = 0.85
"""The share of the rate that a refusal leaves."""

_SEARCH = 0.05
"""The share that a served request adds between the first refusal and the second."""

_GROWTH = 0.005
"""The share of the rate that a served request adds to it; it grows as more are served in a row."""

_GROWTH_PER_SECOND = 0.03
"""The most growth per second, so that a fast provider refuses no more often than a slow one."""

_log = getLogger(__name__)


class RateLimited(Exception):
    """The wait for a request to be admitted would take longer than the caller has.

    Attributes:
        seconds: How long the provider wants nothing to be sent, from now; 0 if only others wait.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no request can be sent for {seconds:.0f} s")
        self.seconds = seconds


class RateLimit:
    """The rate of requests to one model, for one event loop.

    Args:
        model: The model, for the log.
        most: Requests per second that are never exceeded; 0 for no such bound.
    """

    def __init__(self, model: str, *, most: float = 0) -> None:
        self._model = model
        self._most = most or float("inf")
        self._paused_until = 0.0
        self._turns: deque[asyncio.Future[None]] = deque()
        self._dreams: deque[asyncio.Future[None]] = deque()
        self._turns_in_a_row = 0
        self._timer: asyncio.TimerHandle | None = None
        self._filled_at = 0.0
        self._begin_anew()

    @property
    def rate(self) -> float:
        """Requests per second that may be sent now, waits apart."""
        return min(self._rate, self._most)

    @contextmanager
    def refusals(self) -> Generator[Callable[[timedelta | None], None]]:
        """Watch over one request that was admitted.

        Yields:
            A function to call if the provider refused the request for its rate, with the time
            that it asked to wait, None if it did not say. The body then ends by an exception; one
            that ends without was served.
        """
        at = asyncio.get_running_loop().time()
        self._sent.append(at)
        yield lambda wait: self._refused(at, wait)
        self._served(at)

    async def admission(
        self, *, patience: float, background: bool = False, again: bool = False
    ) -> None:
        """Wait until a request may be sent.

        Args:
            patience: How many seconds the caller can wait.
            background: Whether it is a dream's request, which lets those of turns go first.
            again: Whether it was refused before; it then waits before all others of its kind.

        Raises:
            RateLimited: The wait is longer than that.
        """
        now = asyncio.get_running_loop().time()
        if self._paused_until - now > patience:
            raise RateLimited(self._paused_until - now)
        if not self._waiting and self._take(now):
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._dreams if background else self._turns
        queue.appendleft(place) if again else queue.append(place)
        self._wake()
        try:
            async with asyncio.timeout(patience):
                await place
        except TimeoutError:
            raise RateLimited(max(0.0, self._paused_until - self._now())) from None
        finally:
            if place in queue:
                queue.remove(place)

    @property
    def _waiting(self) -> int:
        return len(self._turns) + len(self._dreams)

    def _begin_anew(self) -> None:
        self._limited = False
        self._searching = False
        self._rate = FIRST_RATE
        self._doubled_at = 0.0
        self._tokens = FIRST_BURST
        self._cut_at = 0.0
        self._served_since_cut = 0
        self._refused_in_a_row = 0  # without any that was served between
        self._sent: deque[float] = deque(maxlen=1_000)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _take(self, now: float) -> bool:
        """Take the right to send one request, if there is one now."""
        if now < self._paused_until:
            return False
        if self._limited and now - self._cut_at > FORGOTTEN_AFTER:
            self._begin_anew()
        if self.rate >= UNLIMITED:
            return True
        # After a refusal requests are spread evenly: not every provider takes two at a moment.
        most = max(1.0, self.rate / 50) if self._limited else FIRST_BURST
        self._tokens = min(most, self._tokens + (now - self._filled_at) * self.rate)
        self._filled_at = now
        if self._tokens < 0.999:
            return False
        self._tokens -= 1
        return True

    def _wake(self) -> None:
        """Let those go who may, and come back when the next one may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._now()
        if not self._limited and self._waiting and now - self._doubled_at >= 0.5:
            # The first time only the clock begins: half a second without refusal is not over yet.
            self._rate *= 2 if self._doubled_at else 1
            self._doubled_at = now
        while self._waiting and self._take(now):
            place = self._next()
            if place.done():  # whoever waited there was cancelled, and has not run since
                self._tokens += 1
            else:
                place.set_result(None)
        if self._waiting:
            wait = max(self._paused_until - now, (1 - self._tokens) / self.rate, 0.001)
            self._timer = asyncio.get_running_loop().call_later(wait, self._wake)

    def _next(self) -> asyncio.Future[None]:
        dreams_go = not self._turns or (self._dreams and self._turns_in_a_row >= DREAMS_SHARE - 1)
        self._turns_in_a_row = 0 if dreams_go else self._turns_in_a_row + 1
        return (self._dreams if dreams_go else self._turns).popleft()

    def _served(self, at: float) -> None:
        if at < self._cut_at:
            return  # it was on its way before the refusal: it says nothing about the new rate
        self._served_since_cut += 1
        if self._limited and self._waiting:  # what is not used says nothing of what would be served
            share = min(_GROWTH, _GROWTH_PER_SECOND / self._rate)
            grown = share * (1 + self._served_since_cut / 40) ** 2
            self._rate *= 1 + (_SEARCH if self._searching else grown)

    def _refused(self, at: float, asked: timedelta | None) -> None:
        now = self._now()
        if at in self._sent:
            self._sent.remove(at)
        if not self._limited:
            self._limited = self._searching = True
            self._cut_at = now
            self._first_cut(now)
            _log.warning("%s limits the rate of requests; the worker adapts to it", self._model)
        elif at >= self._cut_at:
            self._searching = False
            self._refused_in_a_row = 0 if self._served_since_cut else self._refused_in_a_row + 1
            self._rate = max(LEAST_RATE, self._rate * (_CUT if self._served_since_cut else 0.5))
            self._cut_at, self._served_since_cut = now, 0
        elif self._searching:  # one more of those that were on their way at the first refusal
            self._first_cut(now)
        guess = min(0.5 * 2.0 ** min(self._refused_in_a_row, 10), LONGEST_GUESS)
        # Other workers wait for the same time: they must not come back at one moment.
        wait = (guess if asked is None else asked.total_seconds()) * (1 + random.random() / 10)
        self._paused_until = max(self._paused_until, now + wait)
        self._tokens, self._filled_at = 0.0, now
        self._wake()

    def _first_cut(self, now: float) -> None:
        of_late = sum(at > now - 1 for at in self._sent)
        self._rate = max(LEAST_RATE, 1.0, min(self._rate, _CUT * of_late))
