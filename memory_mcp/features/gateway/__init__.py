"""Memory for whatever speaks OpenAI's API: calls pass through to a vendor, with what the persona remembers among their messages."""
