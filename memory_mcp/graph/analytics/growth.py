"""How the graph grew: what came to it in each day, week, month or year."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from memory_mcp.store.graph.overview import CreationTimes

Interval = Literal["month", "day", "week", "year"]
INTERVALS: tuple[Interval, ...] = get_args(Interval)


@dataclass(frozen=True, slots=True)
class Grown:
    """What came to the graph in the interval that begins on `begins`, and how much there was at its end."""

    begins: date
    entities: int
    relations: int
    entities_in_all: int
    relations_in_all: int


def growth(came: CreationTimes, interval: Interval, zone: ZoneInfo, limit: int) -> tuple[list[Grown], int]:
    """The latest `limit` intervals in which something came, the earliest first, and how many came before those. Days are the zone's."""
    entities, relations = (_counted(found, interval, zone) for found in (came.entities, came.relations))
    steps, entities_in_all, relations_in_all = [], 0, 0
    for begins in sorted({*entities, *relations}):
        entities_in_all += entities[begins]
        relations_in_all += relations[begins]
        steps.append(Grown(begins, entities[begins], relations[begins], entities_in_all, relations_in_all))
    return steps[-limit:], max(len(steps) - limit, 0)


def _counted(found: Iterable[tuple[datetime, int]], interval: Interval, zone: ZoneInfo) -> Counter[date]:
    counted: Counter[date] = Counter()
    for moment, many in found:
        try:
            day = moment.astimezone(zone).date()
        except OverflowError:  # the first day of the first year, or the last of the last
            day = moment.date()
        counted[_begin(day, interval)] += many
    return counted


def _begin(day: date, interval: Interval) -> date:
    match interval:
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "year":
            return day.replace(month=1, day=1)
