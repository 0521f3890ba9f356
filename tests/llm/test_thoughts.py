import pytest

from memory_mcp.llm.thoughts import without_thoughts


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("<think>\n迷う\n</think>\n\nおやすみ。<think>の話", "おやすみ。<think>の話"),
        ("\n<THINKING>a</think>b</Thinking>c", "c"),
        ("<reasoning>…</reasoning>", ""),
    ],
)
def test_thoughts_at_the_beginning_of_an_answer_are_not_said(answer: str, said: str) -> None:
    assert without_thoughts(answer) == said


@pytest.mark.parametrize(
    "answer", ["", "おやすみ", "言った。<think>a</think>", "<think>終わらない", "<think>a</thinking>b", "<thinks>a</thinks>"]
)
def test_an_answer_that_begins_with_no_thoughts_is_the_same(answer: str) -> None:
    assert without_thoughts(answer) is answer
