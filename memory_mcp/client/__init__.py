"""Calls to a running server: plain HTTP and MCP tools (`connection`), a stdio face for hosts that speak nothing else (`bridge`), and a
retriever for chains of LangChain (`langchain`)."""
