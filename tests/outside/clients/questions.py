"""The conformance suite's tools that ask the client back: an answer that says what is missing, then the same call with it."""

from typing import Any

from fastmcp import Context, FastMCP
from mcp.types import InputRequiredResult

CLIENT_ROOTS = {"method": "roots/list", "params": {}}


def ask(requests: dict[str, Any], state: str | None = None) -> InputRequiredResult:
    """An answer that asks for these; `state` comes back with the client's answers."""
    return InputRequiredResult.model_validate(
        {"resultType": "input_required", "inputRequests": requests, **({"requestState": state} if state else {})}
    )


def form(message: str, name: str, kind: str = "string") -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(text: str, most: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": most}}


def told(context: Context, question: str) -> Any:
    """What the client answered to a question, as a plain object; None while it has not."""
    answer = (context.input_responses or {}).get(question)
    return answer.model_dump(by_alias=True) if answer is not None else None


def filled_in(context: Context, question: str, name: str) -> Any:
    """What the client filled into a form."""
    answer = told(context, question)
    return ((answer or {}).get("content") or {}).get(name)


def register(mcp: FastMCP) -> None:
    """Adds the tools and the prompt to a server."""
    for register_some in (_one_question, _several_rounds, _choosy):
        register_some(mcp)

    @mcp.prompt(description="A prompt that asks for its context.")
    def test_input_required_result_prompt(context: Context) -> Any:
        known = filled_in(context, "user_context", "context")
        return f"Context: {known}" if known else ask({"user_context": form("What context should the prompt use?", "context")})


def _one_question(mcp: FastMCP) -> None:
    @mcp.tool(output_schema=None)
    def test_input_required_result_elicitation(context: Context) -> Any:
        """Greets by name."""
        name = filled_in(context, "user_name", "name")
        return f"Hello, {name}!" if name else ask({"user_name": form("What is your name?", "name")})

    @mcp.tool(output_schema=None)
    def test_streaming_elicitation(context: Context) -> Any:
        """Greets by name as well."""
        name = filled_in(context, "user_name", "name")
        return f"Hello, {name}!" if name else ask({"user_name": form("What is your name?", "name")})

    @mcp.tool(output_schema=None)
    def test_input_required_result_sampling(context: Context) -> Any:
        """Asks the client's model."""
        answer = told(context, "capital_question")
        return str(answer["content"]) if answer else ask({"capital_question": sample("What is the capital of France?", 100)})

    @mcp.tool(output_schema=None)
    def test_input_required_result_list_roots(context: Context) -> Any:
        """Asks for the client's roots."""
        answer = told(context, "client_roots")
        return str(answer["roots"]) if answer else ask({"client_roots": CLIENT_ROOTS})


def _several_rounds(mcp: FastMCP) -> None:
    @mcp.tool(output_schema=None)
    def test_input_required_result_request_state(context: Context) -> Any:
        """Asks for a confirmation, and gets its state back."""
        if told(context, "confirm") and context.request_state == "asked":
            return "state-ok"
        return ask({"confirm": form("Please confirm", "ok", "boolean")}, "asked")

    @mcp.tool(output_schema=None)
    def test_input_required_result_tampered_state(context: Context) -> Any:
        """Trusts its state only as it was sent."""
        if told(context, "confirm") and context.request_state == "asked":
            return "state-ok"
        return ask({"confirm": form("Please confirm", "ok", "boolean")}, "asked")

    @mcp.tool(output_schema=None)
    def test_input_required_result_multi_round(context: Context) -> Any:
        """Asks twice."""
        if context.request_state == "second" and told(context, "step2"):
            return "both answered"
        if context.request_state == "first" and told(context, "step1"):
            return ask({"step2": form("Step 2: What is your favorite color?", "color")}, "second")
        return ask({"step1": form("Step 1: What is your name?", "name")}, "first")

    @mcp.tool(output_schema=None)
    def test_input_required_result_multiple_inputs(context: Context) -> Any:
        """Asks for three things at once."""
        requests = {
            "user_name": form("What is your name?", "name"),
            "greeting": sample("Generate a greeting", 50),
            "client_roots": CLIENT_ROOTS,
        }
        return "all answered" if all(told(context, question) for question in requests) else ask(requests, "asked")


def _choosy(mcp: FastMCP) -> None:
    @mcp.tool(output_schema=None)
    def test_input_required_result_capabilities(context: Context) -> Any:
        """Asks only for what the client can do."""
        able = context.session.client_capabilities
        possible = {
            "elicitation": form("What is your name?", "name"),
            "sampling": sample("Generate a greeting", 50),
            "roots": CLIENT_ROOTS,
        }
        return ask({name: request for name, request in possible.items() if getattr(able, name, None) is not None})
