# The image of the init phase, and of `docker run -i IMAGE --dry-run -`; docs/image.md tells more.
# It runs as root: it prepares a volume for a container whose user it does not know.
#
# Everything is built on the machine's own architecture, also for another one: no step runs a program
# of the target. `make image` builds for both.

# Nothing of this image goes into the result: its packages and sources are downloaded, and checked.
ARG BUILD_IMAGE=docker.io/library/debian:bookworm-slim
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG PIP_CERT
# A folder that is mounted into the build keeps what was compiled (docs/bundle.md).
ARG PAIRUN_BUNDLE_CACHE=/src/build/bundle-cache
ENV DEBIAN_FRONTEND=noninteractive
RUN echo 'Acquire::Retries "3";' >/etc/apt/apt.conf.d/retries \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates binutils python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.lock -r requirements.lock
# What the program is made of changes seldom, and has a layer of its own: build without the cache
# after a security fix in OpenSSL or Python.
# TARGETARCH is amd64 or arm64; where the builder does not say, it is the machine's own.
ARG TARGETARCH
COPY bundle/*.sh bundle/gcc-musl bundle/sources.lock bundle/
COPY bundle/openssh bundle/openssh
RUN bundle/build.sh --prepare ${TARGETARCH:+--arch "$TARGETARCH"}
RUN bundle/rclone.sh ${TARGETARCH:+--arch "$TARGETARCH"} --output /opt/pairun/tools
COPY bundle bundle
COPY image image
COPY pyproject.toml README.md LICENSE ./
COPY docs/pairun.1 docs/pairun.1
COPY pairun pairun
COPY modules modules
COPY playbooks playbooks
COPY plugin_specs plugin_specs
COPY diagnosis diagnosis
# The program that init hands over to the user's container.
RUN bundle/build.sh ${TARGETARCH:+--arch "$TARGETARCH"} --output /opt/pairun/runtime
RUN PYTHON=/opt/build/bin/python image/root.sh ${TARGETARCH:+--arch "$TARGETARCH"} --output /layers

# A layer for each thing that changes on its own: Debian's files, rclone, OpenSSH, the program, pairun.
FROM scratch
COPY --from=build /layers/system /
COPY --from=build /opt/pairun/tools/rclone /opt/pairun/tools/fusermount /opt/pairun/tools/
COPY --from=build /layers/openssh /opt/pairun/tools
COPY --from=build /opt/pairun/runtime /opt/pairun/
COPY --from=build /layers/pairun /
ENV PATH=/opt/pairun/bin:/opt/pairun/tools/ssh:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="pairun" \
      org.opencontainers.image.description="Prepares the ground for a job, and is PID 1 in its container" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# Both entry points: `docker run IMAGE` is the init phase, `docker run IMAGE runtime` PID 1,
# `docker run -i IMAGE --dry-run -` a review with the defaults of this image.
ENTRYPOINT ["pairun"]
CMD ["init"]
