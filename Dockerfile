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

# The program that init hands over to the user's container. What it is made of changes seldom, and
# has a layer of its own: build without the cache after a security fix in OpenSSL or Python.
FROM debian:bookworm-slim AS bundle
WORKDIR /src
COPY requirements.lock ./
COPY bundle/*.sh bundle/gcc-musl bundle/
RUN bundle/build.sh --prepare
COPY bundle bundle
COPY pairun pairun
COPY modules modules
RUN bundle/build.sh --output /opt/pairun/runtime

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 git git-lfs openssh-client ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/pairun /opt/pairun
COPY --from=bundle /opt/pairun/runtime /opt/pairun/runtime
# An operator's own init programs: `COPY src/* /usr/local/pai/init.d/`, or with /user. Both are
# links to a folder that the volume at /usr/local/pai does not hide.
RUN mkdir -p /opt/pairun/init.d /usr/local/pai /user/local/pai \
    && ln -s /opt/pairun/init.d /usr/local/pai/init.d \
    && ln -s /opt/pairun/init.d /user/local/pai/init.d
ENV PATH=/opt/pairun/bin:$PATH PYTHONDONTWRITEBYTECODE=1
# Both entry points: `docker run IMAGE` is the init phase, `docker run IMAGE runtime` PID 1,
# `docker run -i IMAGE --dry-run -` a review with the defaults of this image.
ENTRYPOINT ["pairun"]
CMD ["init"]
