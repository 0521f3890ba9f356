# Memory MCP on the CPU. docker-compose.yml beside this file says how it is meant to run.
FROM python:3.12-slim

# The CPU build of torch: the default one brings gigabytes of CUDA libraries along.
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu

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

# What changes rarely comes first. torch alone and before the rest, so that nothing else pulls a build of its own choice.
COPY --chown=memory:memory requirements.txt ./
RUN pip install --index-url "$TORCH_INDEX_URL" "$(grep '^torch==' requirements.txt)"
RUN pip install --requirement requirements.txt

COPY --chown=memory:memory pyproject.toml README.md LICENSE ./
COPY --chown=memory:memory memory_mcp ./memory_mcp
RUN pip install --no-deps . && rm -rf build *.egg-info

# In force where nothing is mounted at /config.
COPY --chown=memory:memory config.json /config/

USER memory
VOLUME ["/data", "/models"]
EXPOSE 8000

# Without the proxy that the environment may name: it can't reach this container's own port.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:8000/health', timeout=4)"]

# Listens on 127.0.0.1 inside the container unless the environment says otherwise, as docker-compose.yml does.
CMD ["memory-mcp", "serve"]
