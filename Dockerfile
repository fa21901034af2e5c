# syntax=docker/dockerfile:1

# The image holds one binary and its data folder. Without settings it keeps everything in an SQLite file below /data and
# listens on 127.0.0.1:8080 *inside* the container: without settings `auth.mode` is `none`, which the
# server allows on a loopback address alone, so publishing the port would reach nobody. Set `TIDEMARK_AUTH__MODE` to `keys`
# and `TIDEMARK_LISTEN` to `0.0.0.0:8080` and publish the port; or share the host's network
#
#   docker run --network host --volume tidemark:/data tidemark
#
# or share the network of a proxy that stands in front, as docker-compose.yml does.

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked --package tidemark-interface \
    && install -D target/release/tidemark /out/tidemark

FROM debian:bookworm-slim
# Roots of trust, for model servers behind TLS.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --user-group --no-create-home --home-dir /data --uid 10001 tidemark \
    && install --directory --owner tidemark --group tidemark --mode 0750 /data
COPY --from=build /out/tidemark /usr/local/bin/tidemark
COPY --chmod=0755 deploy/healthcheck /usr/local/bin/tidemark-healthcheck

USER tidemark
# The default store, sqlite://tidemark.db, is relative to this.
WORKDIR /data
VOLUME /data
ENV TIDEMARK_LISTEN=127.0.0.1:8080
# The server drains its streams on SIGTERM.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["tidemark-healthcheck"]
ENTRYPOINT ["tidemark"]
CMD ["serve"]
