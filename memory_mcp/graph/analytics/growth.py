"""The growth of the graph: new entities and relations for each day, week, month or year."""

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
class Growth:
    """New entities and relations of the interval that begins on `begins`, and the totals at its end."""

    begins: date
    entities: int
    relations: int
    entities_in_all: int
    relations_in_all: int


def growth(came: CreationTimes, interval: Interval, zone: ZoneInfo, limit: int) -> tuple[list[Growth], int]:
    """The latest `limit` intervals with anything new, the earliest first, and the number of earlier ones. Days are local."""
    entities, relations = (_counted(dates, interval, zone) for dates in (came.entities, came.relations))
    steps, entities_in_all, relations_in_all = [], 0, 0
    for begins in sorted({*entities, *relations}):
        entities_in_all += entities[begins]
        relations_in_all += relations[begins]
        steps.append(Growth(begins, entities[begins], relations[begins], entities_in_all, relations_in_all))
    return steps[-limit:], max(len(steps) - limit, 0)


def _counted(dates: Iterable[tuple[datetime, int]], interval: Interval, zone: ZoneInfo) -> Counter[date]:
    counted: Counter[date] = Counter()
    for moment, count in dates:
        try:
            day = moment.astimezone(zone).date()
        except OverflowError:  # the first day of the first year, or the last of the last
            day = moment.date()
        counted[_begin(day, interval)] += count
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
