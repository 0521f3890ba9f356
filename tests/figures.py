"""The figures that the trust tests are for: each is counted by the run that it is printed after.

pytest tests/trust               as many rounds as fit beside all other tests
pytest tests/trust --thorough    more of everything: what the README's figures come from (`make trust`)
"""

from collections.abc import Callable

import pytest

Figure = Callable[[str, object], None]

FIGURES = pytest.StashKey[list[tuple[str, object]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--thorough`."""
    parser.addoption("--thorough", action="store_true", help="more rounds of everything that kills, floods and guesses")


def pytest_configure(config: pytest.Config) -> None:
    """A place for the figures."""
    config.stash[FIGURES] = []


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """Notes a figure by its name, such as `figure("kill rounds", 25)`; all are printed at the end of the run, counts of one name as their sum."""

    def figure(name: str, value: object) -> None:
        request.config.stash[FIGURES].append((name, value))

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
        for name, value in summed.items():
            terminalreporter.line(f"{name}: {value}")
