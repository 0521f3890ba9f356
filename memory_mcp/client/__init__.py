"""Clients of a running server: HTTP calls and MCP tools (`connection`), finding one (`discovery`), the stdio bridge (`bridge`, `wire`), and a LangChain retriever (`langchain`)."""
