"""Features: the folders of `memory_mcp/features/`. Each can be deleted, and this module alone knows where they are.

What a feature brings is in modules of these names, imported by those who offer a place for it:

    settings.py     SETTINGS    keys of config.json                         config/group.py:Keys
    migrations.py   MIGRATIONS  tables of its own                           store/migrations.py
    commands.py     COMMANDS    commands of `memory-mcp`                    cli/feature.py:Commands
    feature.py      FEATURE     operations, tools, pages and chores         server/feature.py:Feature
    older_data.py   OLDER_DATA  what is done about files of older servers   upkeep/older_data.py:OlderData
    library.py      __all__     names for programs that import this package chat.py

Only what is asked for is imported: a page of help reads no operation, and the server no command.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

FOLDER = Path(__file__).with_name("features")


@cache
def modules(name: Literal["settings", "migrations", "commands", "feature", "older_data", "library"]) -> tuple[ModuleType, ...]:
    """The modules of this name in all features, in the alphabetical order of these."""
    folders = sorted(path.parent.name for path in FOLDER.glob(f"*/{name}.py"))
    return tuple(import_module(f"memory_mcp.{FOLDER.name}.{folder}.{name}") for folder in folders)
