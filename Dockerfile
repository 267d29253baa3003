# One image for the API, the workers and everything else: the command says which.

FROM python:3.13.14-slim-trixie AS build
WORKDIR /build
RUN python -m venv /opt/memory
COPY requirements-server.lock .
RUN /opt/memory/bin/pip install --no-cache-dir --require-hashes -r requirements-server.lock
COPY . .
RUN /opt/memory/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13.14-slim-trixie
COPY --from=build /opt/memory /opt/memory
ENV PATH=/opt/memory/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin memory
USER 10001
WORKDIR /tmp
EXPOSE 8321
ENTRYPOINT ["memory"]
CMD ["--help"]
