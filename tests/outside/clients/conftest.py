"""What the tests with real clients start from: clients of the TypeScript SDKs, driven line by line."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from node_packages import Node
from places import CLIENTS


class Driver:
    """One connected client of a TypeScript SDK."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, deed: str, **details: Any) -> Any:
        """What the SDK returned."""
        told = self.told(deed, **details)
        assert "answer" in told, told
        return told["answer"]

    def told(self, deed: str, **details: Any) -> dict[str, Any]:
        """What the SDK returned or threw: {"answer": …} or {"error": {"code", "message"}}."""
        self._process.stdin.write(json.dumps({"do": deed, **details}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the client ended with status {self._process.wait(60)}"
        return json.loads(line)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool's answer, which its text names the persona of, too."""
        answer = self("call", name=name, arguments=arguments)
        assert not answer.get("isError"), answer
        assert answer["structuredContent"]["persona"] in answer["content"][0]["text"]
        return answer["structuredContent"]

    def refusal(self, name: str, **arguments: Any) -> str:
        """The words of a tool's refusal."""
        answer = self("call", name=name, arguments=arguments)
        assert answer["isError"], answer
        return answer["content"][0]["text"]

    def close(self) -> None:
        self._process.stdin.close()
        try:
            assert self._process.wait(60) == 0
        finally:
            self._process.kill()
            self._process.stdout.close()


@pytest.fixture
def drive(node: Node) -> Iterator[Callable[..., Driver]]:
    """drive("v2", url, headers={…}, era="auto"): a connected client."""
    with ExitStack() as stack:

        def drive(sdk: str, url: str, **options: Any) -> Driver:
            driver = Driver(node.started(CLIENTS / "driver.mjs", sdk, url, json.dumps(options)))
            stack.callback(driver.close)
            return driver

        yield drive
