"""An optional LangChain chat model, named in the configuration and used only for background work such as summaries."""
