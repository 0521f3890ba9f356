"""Takes out of an assistant's text what its program shows otherwise: marks of sources and frames. Of a mark that shows a name or a link, that stays."""

import json
import re
from contextlib import suppress

# What ChatGPT writes between private characters in place of a source, a name or a link.
_MARK = re.compile(" ?\ue200([^\ue200-\ue202]{0,80})((?:\ue202[^\ue200-\ue202]{0,4000}){0,50})\ue201")
_PRIVATE = re.compile("[\ue200-\ue20f]")
# In place of a mark that shows nothing; brackets around nothing else go with it.
_NOTHING = "\ue20f"
_EMPTIED = re.compile(rf" ?[(（]\s{{0,3}}(?:{_NOTHING}[\s,;、]{{0,3}}){{1,50}}[)）]")
# 【4†source】 and :contentReference[oaicite:0]{index=0} of older ones, [citation:1] of DeepSeek, <grok:render …>…</grok:render> of Grok.
_OF_SOURCES = re.compile(
    r" ?(?:【\d{1,4}(?::\d{1,4})?†[^【】]{0,200}】|:contentReference\[oaicite:\d{1,4}\](?:\{index=\d{1,4}\})?|\[citation:\d{1,4}\]"
    r"|<grok:render [^<>]{0,500}>(?:(?!</?grok:render).){0,2000}</grok:render>)",
    re.DOTALL,
)


# :::writing{variant="email"} of ChatGPT, around a text that its program shows in a frame.
_FRAME = re.compile(r"^:::\w{1,30}\{[^{}\n]{0,300}\}[ \t]*\n(.*?)(?:\n?^:::[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)


def without_marks(text: str) -> str:
    """A text without the marks of its sources, and without the space before each; and without those of frames."""
    return _PRIVATE.sub("", _EMPTIED.sub("", _MARK.sub(_shown_by_mark, _OF_SOURCES.sub(_NOTHING, _FRAME.sub(r"\1", text)))))


def _shown_by_mark(mark: re.Match[str]) -> str:
    kind, values = mark[1], mark[2].split("\ue202")[1:]
    shown = values[0] if kind in ("url", "link_title") and values else ""
    if kind == "entity" and values:
        with suppress(ValueError, RecursionError):
            listed = json.loads(values[0])
            shown = listed[1] if isinstance(listed, list) and len(listed) > 1 and isinstance(listed[1], str) else ""
    return f"{' ' if mark[0][0] == ' ' else ''}{shown}" if shown else _NOTHING
