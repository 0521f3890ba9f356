"""The icons, avatars and days that pages show."""

import hashlib
from collections.abc import Mapping
from datetime import date

from markupsafe import Markup

from memory_mcp.dates import format as dates_format
from memory_mcp.dates.format import Language

ICONS = "vendor/lucide-1.62.0.svg"
# As many colors as dashboard.css has for avatars.
HUES = 12
# By the name of a page's text, a verdict, or a type of people and things.
ICON_OF: Mapping[str, str] = {
    "today": "sun",
    "memories": "library",
    "ask": "sparkles",
    "people": "users",
    "chat": "message-circle",
    "house": "sliders-horizontal",
    "house_persona": "user-round",
    "import": "upload",
    "log_room": "scroll-text",
    "privacy_room": "shield",
    "config_room": "settings",
    "tokens_room": "key-round",
    "add": "plus",
    "chat_begin": "message-circle",
    "open_trash": "trash-2",
    "context": "bot",
    "figures": "chart-column",
    "people_list": "users",
    "picture": "network",
    "path": "route",
    "twice": "merge",
    "statistics": "chart-column",
    "export": "download",
    "backup_now": "archive",
    "helped": "thumbs-up",
    "hurt": "thumbs-down",
    "stale": "hourglass",
    "Person": "user-round",
    "Location": "map-pin",
    "Organization": "building-2",
    "Concept": "lightbulb",
    "Event": "calendar",
    "Project": "layers",
}
OTHER_ICON = "tag"


def icon(sprite: str, name: str) -> Markup:
    """An icon of the sprite at this address."""
    return Markup('<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>').format(sprite, name)


def avatar(name: str, form: str = "") -> Markup:
    """The initial of a persona or a speaker, on the color that this name always has."""
    hue = hashlib.sha256(name.encode("utf-8", "replace")).digest()[0] % HUES
    return Markup('<span class="avatar hue-{} {}" aria-hidden="true">{}</span>').format(hue, form, name.strip()[:1].upper() or "?")


def weekday(day: str, language: Language) -> str:
    """The day of the week of an ISO date."""
    return dates_format.weekday(date.fromisoformat(day[:10]), language)


def month(day: str, language: str) -> str:
    """The month of an ISO date."""
    there = date.fromisoformat(day[:10])
    return f"{there.month}月" if language == "ja" else f"{there:%b}"


def moment(moment: str, language: str, this_year: int) -> str:
    """An ISO month, day or time as its day, and its time of day to the minute if it has one: 11月28日 21:54, Nov 28, 21:54. Another year than this
    one stands with it.
    """
    named, _, time = moment.partition("T")
    if not named:
        return ""
    year, _, day = [*named.split("-"), ""][:3]
    name = month(f"{named}-01", language)
    other_year = "" if day and int(year) == this_year else year
    if language == "ja":
        text = f"{f'{other_year}年' if other_year else ''}{name}{f'{int(day)}日' if day else ''}"
    else:
        text = " ".join(filter(None, [name, day and f"{int(day)}{',' if other_year else ''}", other_year]))
    return text if not time or time.startswith("00:00:00") else f"{text}{' ' if language == 'ja' else ', '}{time[:5]}"


def days_until(day: str, today: str) -> int:
    """How many days it is from one ISO date to another."""
    return (date.fromisoformat(day[:10]) - date.fromisoformat(today[:10])).days
