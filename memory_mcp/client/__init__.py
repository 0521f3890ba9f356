"""Clients of a running server: HTTP calls and MCP tools (`connection`), a stdio bridge (`bridge`), and a LangChain retriever (`langchain`)."""
