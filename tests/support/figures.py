"""Figures that tests count, such as killed rounds or fuzz cases, and that the end of the run prints; `--thorough`, for more rounds.

pytest tests/promises            as many rounds as fit in `make test`: what the README's figures come from
pytest -m trust --thorough     more of everything (`make trust`)
"""

from collections.abc import Callable

import pytest
from places import TESTS

Figure = Callable[[str, object], None]

_PROMISES = TESTS / "promises"
_PREFIX = "figure: "
FIGURES = pytest.StashKey[list[tuple[str, object]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--thorough`."""
    parser.addoption("--thorough", action="store_true", help="more rounds of everything that kills, floods and guesses")


def pytest_configure(config: pytest.Config) -> None:
    """Creates the list of figures, and the object that collects them from the tests' reports."""
    config.stash[FIGURES] = []
    config.pluginmanager.register(_Collector(config.stash[FIGURES]), "figure-collector")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks as `trust` what --thorough makes longer, and skips what is marked `thorough` without it."""
    for item in items:
        if _PROMISES in item.path.parents or "thorough" in getattr(item, "fixturenames", ()) or item.get_closest_marker("thorough"):
            item.add_marker(pytest.mark.trust)
        if item.get_closest_marker("thorough") and not config.getoption("--thorough"):
            item.add_marker(pytest.mark.skip(reason="too long for `make test`; pass --thorough, as `make trust` does"))


class _Collector:
    def __init__(self, figures: list[tuple[str, object]]) -> None:
        self._figures = figures

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collects a test's figures once, with its last report; under pytest-xdist that report comes from a worker process."""
        if report.when == "teardown":
            self._figures += [(name.removeprefix(_PREFIX), value) for name, value in report.user_properties if name.startswith(_PREFIX)]


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """Records a figure under a name, such as `figure("kill rounds", 25)`. The end of the run prints all; counts under one name are added up."""

    def figure(name: str, value: object) -> None:
        request.node.user_properties.append((_PREFIX + name, value))

    return figure


@pytest.fixture
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether there is time for more rounds."""
    return bool(request.config.getoption("--thorough"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the figures."""
    figures = terminalreporter.config.stash[FIGURES]
    if figures:
        terminalreporter.section("figures")
        summed: dict[str, object] = {}
        for name, value in figures:
            before = summed.get(name)
            summed[name] = before + value if isinstance(before, int) and isinstance(value, int) else value
        for name, value in sorted(summed.items()):
            terminalreporter.line(f"{name}: {value}")
