# docker build -t goalkeeper . && docker run -p 127.0.0.1:8787:8787 -e GOALKEEPER_TOKEN=… -v goalkeeper:/data goalkeeper
# The container listens on every address, so it refuses to start without GOALKEEPER_TOKEN.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml requirements.lock README.md ./
COPY proxy proxy
COPY config config
# the lock holds development tools too: as a constraint it gives versions without adding packages
RUN python -m venv /opt/goalkeeper \
    && /opt/goalkeeper/bin/python -m pip install --no-cache-dir --constraint requirements.lock .

FROM python:3.12-slim
COPY --from=build /opt/goalkeeper /opt/goalkeeper
# a folder that the unprivileged user may create the store in; named volumes take over its mode
RUN mkdir --mode=1777 /data && /opt/goalkeeper/bin/goalkeeper --version
ENV PATH=/opt/goalkeeper/bin:$PATH HOME=/data GOALKEEPER_HOST=0.0.0.0 GOALKEEPER_DATA=/data/goalkeeper
USER 10001
VOLUME /data
EXPOSE 8787
ENTRYPOINT ["goalkeeper"]
CMD ["serve"]
