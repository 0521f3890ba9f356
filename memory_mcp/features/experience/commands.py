"""`memory-mcp figures` and `memory-mcp weights`: how recall does, and weights of the search fitted to one's own judgements."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli.feature import Commands
from memory_mcp.cli.japanese import named_counts, tell
from memory_mcp.cli.options import AsJson, PersonaName, Url, command_line, connection, end_with_json, memories_in_words, print_json
from memory_mcp.domain import JUDGEMENTS
from memory_mcp.wording import sentence

_LISTS = {
    "never_shown": "never shown, the oldest first:",
    "shown_and_unused": "often shown and never used:",
    "hurt": "judged as misleading:",
}


def figures(
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="How many days.", metavar="N")] = 30,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50, help="How many memories of each list.", metavar="N")] = 10,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show how recall does: how often it finds something, what is never shown or used, and what was judged as misleading."""
    answer = connection(url, persona).get_json("/api/recall/figures", days=str(days), limit=str(limit))
    end_with_json(answer, as_json)
    asked, answered = (sum(day[name] for day in answer["searches"]) for name in ("asked", "answered"))
    tell("{}: {}, {} ever shown", answer["persona"], memories_in_words(answer["memories"]), answer["shown"])
    tell("{} {}, {} found something{}", asked, "search" if asked == 1 else "searches", answered, _percent(answer, "success"))
    judged, reported = (
        named_counts("verdict", {name: count for name, count in answer["verdicts"].items() if (name in JUDGEMENTS) is kind})
        for kind in (True, False)
    )
    tell("judged: {}{}", judged or sentence("nothing"), _percent(answer, "precision"))
    if reported:
        tell("reported: {}", reported)
    stored = sum(day["stored"] for day in answer["growth"])
    tell("{} stored in {} days, {} a day", stored, days, f"{stored / days:.1f}")
    _show_own(answer.get("weights", {}))
    for name, words in _LISTS.items():
        if answer[name]:
            tell(f"\n{words}")
            for memory in answer[name]:
                typer.echo(f"  {memory['key']}  {memory['content']}")


def weights(
    apply: Annotated[bool, typer.Option("--apply", help="Use them from now on, if the held-out half confirms them.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Use the weights of config.json again.")] = False,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Fit the weights of the search to the persona's own judgements, and show them. Nothing changes without --apply."""
    answer = connection(url, persona).post_json("/api/recall/weights", {"apply": apply, "reset": reset})
    if as_json:
        print_json(answer)
    elif reset:
        tell("{} has the weights of config.json", answer["persona"])
    else:
        _show_weights(answer, url)


def _show_weights(answer: Mapping[str, Any], url: str | None) -> None:
    tell("{}: {} judged queries", answer["persona"], answer["queries"])
    _show_own({} if answer["applied"] else answer.get("own", {}))
    for name, value in answer["weights"].items():
        typer.echo(f"  fusion.{name}: {value}")
    for part, words in (("fitted", "the half that chose them"), ("held_out", "the half that had no say")):
        before, after = answer[part]
        tell("{}: {} now, {} with them", words, f"{before:.3f}", f"{after:.3f}")
    if answer["applied"]:
        tell("they are in force")
    elif answer["better"]:
        tell("apply them with: {}", command_line("weights", "--apply", persona=answer["persona"], url=url))
    else:
        tell("no better weights than those in force")


def _show_own(weights: Mapping[str, float]) -> None:
    if weights:
        tell("weights of its own: {}", ", ".join((f"fusion.{name} {value:g}" for name, value in weights.items())))


def _percent(answer: Mapping[str, Any], name: str) -> str:
    return f" ({answer[name]:.0%})" if name in answer else ""


COMMANDS = Commands(data=(figures, weights))
