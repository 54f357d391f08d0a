# The image of the init phase, and of `docker run -i IMAGE --dry-run -`; docs/image.md tells more.
# It runs as root: it prepares a volume for a container whose user it does not know.

# What pairun needs of Python, each in the version and with the digest of the lock. Only /opt/pairun
# goes into the image: no pip, no compiler.
FROM docker.io/library/debian:bookworm-slim AS build
ARG PIP_CERT
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.lock \
    && python3 -m venv --without-pip /opt/pairun \
    && /opt/build/bin/pip --python /opt/pairun/bin/python install --no-cache-dir --require-hashes \
       -r requirements.lock
COPY pyproject.toml README.md LICENSE CHANGELOG.md CONTRIBUTING.md SECURITY.md mkdocs.yml ./
COPY docs docs
COPY examples examples
COPY pairun pairun
COPY modules modules
COPY playbooks playbooks
COPY plugin_specs plugin_specs
COPY diagnosis diagnosis
RUN /opt/build/bin/python -m hatchling build -t wheel -d /dist \
    && /opt/build/bin/pip --python /opt/pairun/bin/python install --no-cache-dir --no-deps /dist/*.whl

# The program that init hands over to the user's container. What it is made of changes seldom, and
# has a layer of its own: build without the cache after a security fix in OpenSSL or Python.
FROM docker.io/library/debian:bookworm-slim AS bundle
ARG PIP_CERT
# A folder that is mounted into the build keeps what was compiled (docs/bundle.md).
ARG PAIRUN_BUNDLE_CACHE=/src/build/bundle-cache
WORKDIR /src
COPY requirements.lock ./
COPY bundle/*.sh bundle/gcc-musl bundle/sources.lock bundle/
COPY bundle/openssh bundle/openssh
RUN bundle/build.sh --prepare
RUN bundle/rclone.sh --output /opt/pairun/tools
COPY bundle bundle
COPY pairun pairun
COPY modules modules
RUN bundle/build.sh --output /opt/pairun/runtime

FROM docker.io/library/debian:bookworm-slim
# Documentation and translations of Debian's packages help nobody here.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
       ca-certificates git git-lfs openssh-client python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log \
       /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale
COPY --from=build /opt/pairun /opt/pairun
COPY --from=bundle /opt/pairun/runtime /opt/pairun/runtime
COPY --from=bundle /opt/pairun/tools /opt/pairun/tools
# The rules of the diagnosis as PID 1 reads them: worked out here, and not in every Pod.
RUN /opt/pairun/bin/pairun export rules > /opt/pairun/rules.json
# An operator's own init programs: `COPY src/* /usr/local/pai/init.d/`, or with /user. Both are
# links to a folder that the volume at /usr/local/pai does not hide.
RUN mkdir -p /opt/pairun/init.d /usr/local/pai /user/local/pai \
    && ln -s /opt/pairun/init.d /usr/local/pai/init.d \
    && ln -s /opt/pairun/init.d /user/local/pai/init.d
ENV PATH=/opt/pairun/bin:$PATH PYTHONDONTWRITEBYTECODE=1
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="pairun" \
      org.opencontainers.image.description="Prepares the ground for a job, and is PID 1 in its container" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="docker.io/library/debian:bookworm-slim" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# Both entry points: `docker run IMAGE` is the init phase, `docker run IMAGE runtime` PID 1,
# `docker run -i IMAGE --dry-run -` a review with the defaults of this image.
ENTRYPOINT ["pairun"]
CMD ["init"]
