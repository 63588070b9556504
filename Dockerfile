# One image for scorer and monitor: docker run groundwatch score | monitor | run | doctor | ...
# CPU build of torch, embedding model baked in, no compiler, not root.

FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/groundwatch
ENV PATH=/opt/groundwatch/bin:$PATH
# torch by itself: it is the largest layer and changes least. Its index carries CPU builds only.
RUN pip install --index-url https://download.pytorch.org/whl/cpu --extra-index-url https://pypi.org/simple "torch==2.13.0+cpu"
WORKDIR /src
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY metrics metrics
COPY consumer consumer
RUN pip install --constraint requirements.lock ".[models]"
ENV GROUNDWATCH__EMBEDDING__MODELS_DIR=/opt/models
RUN groundwatch models prepare

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin groundwatch
COPY --from=build /opt/groundwatch /opt/groundwatch
COPY --from=build /opt/models /opt/models
COPY deploy/healthcheck.py /opt/healthcheck.py
# Both listeners leave the container, or nothing could scrape them. No hub is ever asked: the model is in the image.
ENV PATH=/opt/groundwatch/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HF_HUB_OFFLINE=1 \
    GROUNDWATCH__EMBEDDING__MODELS_DIR=/opt/models \
    GROUNDWATCH__METRICS__SCORER__LISTEN=0.0.0.0:9108 \
    GROUNDWATCH__METRICS__MONITOR__LISTEN=0.0.0.0:9109 \
    GROUNDWATCH__LOGGING__FORMAT=json
USER 10001
WORKDIR /tmp
EXPOSE 9108 9109
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 \
    CMD ["python", "/opt/healthcheck.py", "9108", "9109"]
ENTRYPOINT ["groundwatch"]
CMD ["--help"]
