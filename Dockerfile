# The image of the init phase. Runs as root: it prepares a volume for a container whose user it
# does not know.
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python3 -m venv /opt/pairun \
    && /opt/pairun/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY requirements-build.lock ./
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.lock
COPY pairun pairun
COPY modules modules
COPY playbooks playbooks
COPY plugin_specs plugin_specs
RUN /opt/build/bin/python -m hatchling build -t wheel -d /dist \
    && /opt/pairun/bin/pip install --no-cache-dir --no-deps /dist/*.whl

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 git ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/pairun /opt/pairun
ENV PATH=/opt/pairun/bin:$PATH PYTHONDONTWRITEBYTECODE=1
# Both entry points: `docker run IMAGE` is the init phase, `docker run IMAGE runtime` PID 1,
# `docker run -i IMAGE --dry-run -` a review with the defaults of this image.
ENTRYPOINT ["pairun"]
CMD ["init"]
