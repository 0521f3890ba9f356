"""The sprite of icons that the pages of the dashboard use, from the package that has them all.

npm pack lucide-static@1.62.0 && tar xzf lucide-static-1.62.0.tgz && python tests/support/icons.py package
"""

import hashlib
import re
import sys
from pathlib import Path

from places import ROOT

from memory_mcp.features.dashboard.looks import ICON_OF, ICONS, OTHER_ICON

DASHBOARD = ROOT / "memory_mcp" / "features" / "dashboard"
SPRITE = DASHBOARD / "static" / ICONS
# `icon("sun")` in a template, and what Python names for pages, kinds and types.
USED = re.compile(r"""(?:icon\(|icon=|sign=)["']([a-z0-9-]+)["']""")


def used() -> set[str]:
    """The names of the icons that the pages use."""
    sources = [path.read_text(encoding="utf-8") for pattern in ("*.html", "*.py") for path in DASHBOARD.rglob(pattern)]
    return {name for source in sources for name in USED.findall(source)} | {*ICON_OF.values(), OTHER_ICON}


def main(package: Path) -> None:
    """Write the sprite."""
    symbols = []
    for name in sorted(used()):
        drawn = (package / "icons" / f"{name}.svg").read_text(encoding="utf-8")
        shapes = " ".join(drawn.partition(">\n  <")[2].removesuffix("</svg>\n").split())
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24"><{shapes}</symbol>')
    license_ = (package / "icons" / "sun.svg").read_text(encoding="utf-8").splitlines()[0]
    readme = SPRITE.with_name("README.md")
    sprite = f'{license_}\n<svg xmlns="http://www.w3.org/2000/svg">\n' + "\n".join(symbols) + "\n</svg>\n"
    SPRITE.write_text(sprite, encoding="utf-8")
    digest = hashlib.sha256(sprite.encode()).hexdigest()
    readme.write_text(
        re.sub(r"(lucide-.*`)\w+(` \|)$", rf"\g<1>{digest}\2", readme.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
