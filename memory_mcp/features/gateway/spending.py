"""How many tokens of the vendors' models each caller has used today."""

from collections import Counter
from datetime import date, datetime, timedelta

from memory_mcp.errors import TooManyCalls
from memory_mcp.features.gateway.answers import Answer
from memory_mcp.features.gateway.settings import Gateway
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.server.auth import Admission
from memory_mcp.wording import sentence


class Spending:
    """Of one server, since its start. Used on the event loop alone."""

    def __init__(self) -> None:
        self._day: date | None = None
        self._spent: Counter[str] = Counter()

    def require(self, admission: Admission, gateway: Gateway, now: datetime) -> None:
        """Raises TooManyCalls where the caller has used what it may use in a day. `now` is in the zone whose days count."""
        if gateway.tokens_per_day is None or self._today(now)[_caller(admission)] < gateway.tokens_per_day:
            return
        midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), now.tzinfo)
        left = int((midnight - now).total_seconds()) + 1
        raise TooManyCalls("too many tokens today", sentence("{} a day are the limit", f"{gateway.tokens_per_day:,}"), left)

    def add(self, admission: Admission, tokens: tuple[int, int], now: datetime) -> None:
        """Count what a call has used."""
        self._today(now)[_caller(admission)] += sum(tokens)

    def _today(self, now: datetime) -> Counter[str]:
        if self._day != now.date():
            self._day, self._spent = now.date(), Counter()
        return self._spent


def tokens_of(answer: Answer, sent: bytes) -> tuple[int, int]:
    """The tokens that a call took: as the vendor says, else estimated. Parts that are no text count by their bytes as sent."""
    return answer.tokens or (estimate_tokens(sent.decode(errors="replace")), estimate_tokens(answer.text))


def _caller(admission: Admission) -> str:
    return f"token {admission.token}" if admission.token else admission.client
