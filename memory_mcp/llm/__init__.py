"""An optional chat model: any LangChain one that configuration names, asked for summaries and for nothing a caller waits for."""
