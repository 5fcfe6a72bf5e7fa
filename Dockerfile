# The daemon as a container: not as root, on a read-only file system, with everything that it keeps in a volume.
#
#   docker build -t meantime .
#   docker run -d --name meantime --read-only --tmpfs /tmp -v meantime:/state meantime
#   docker exec meantime meantime run -- make
#
# docs/guides/daemon.md says more. tests/daemon/test_container.py runs these steps, without Docker.

FROM debian:trixie-slim AS base
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

FROM base AS build
COPY LICENSE README.md hatch_build.py pyproject.toml /source/
COPY src /source/src
RUN python3 -m venv /opt/meantime \
    && /opt/meantime/bin/pip install --no-cache-dir --disable-pip-version-check '/source[server,mcp]'

FROM base
COPY --from=build /opt/meantime /opt/meantime
# A new volume takes its owner and mode from this folder.
RUN useradd --uid 10001 --home-dir /state --no-create-home --shell /bin/sh meantime \
    && install --directory --owner=meantime --group=meantime --mode=0700 /state
ENV PATH=/opt/meantime/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV MEANTIME_HOME=/state/meantime MEANTIME_CONFIG=/state/config.toml
# A command inside must not start a second daemon while the first one is starting or stopping.
ENV MEANTIME_NO_START=1
USER meantime
WORKDIR /state
VOLUME /state
# After a crash a large ledger is examined before the daemon answers, hence the long start.
HEALTHCHECK --interval=30s --timeout=10s --start-period=600s --retries=3 CMD meantime status || exit 1
ENTRYPOINT ["meantime", "up", "--foreground"]
