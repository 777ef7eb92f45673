"""An S3-compatible store on this machine, in a process of its own, for tests and measurements.

    python -m plait_lab.object_store [ADDRESS PORT]

It prints its port, then serves; without an address on loopback, at a port that is free. It knows
everybody but `nobody`. `GET /__away__/30` lets it answer 503 for so many seconds, with `?control`
about control directories only, and `GET /__requests__` tells how often it was asked about them, by
method and folder.

`./dev setup --integration` fetches what it needs: moto, and Hadoop's file system for S3.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

JARS = Path(sys.prefix, "integration", "jars")
"""Where Hadoop's file system for S3 is."""
BUCKET = "bucket"
_AWAY, _ASKED = "/__away__/", "/__requests__"
_STRANGER = "Credential=nobody/"
_CONTROL = re.compile(r"/plait/[^/&]*/?(?P<folder>[a-z]*)")


def missing() -> str | None:
    """What is not set up, in words; None if all is there."""
    if find_spec("moto") is None:
        return "moto is not installed: ./dev setup --integration fetches it"
    if not list(JARS.glob("hadoop-aws-*.jar")):
        return "hadoop-aws is missing: ./dev setup --integration fetches it"
    return None


@contextmanager
def object_store() -> Iterator[str]:
    """A server with one bucket, for a while; its end point."""
    command = [sys.executable, "-m", "plait_lab.object_store"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None, "it is a pipe"
        place = f"http://127.0.0.1:{int(server.stdout.readline())}"
        made = urllib.request.Request(f"{place}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made).read()
        yield place
    finally:
        server.kill()
        server.wait()


def environment(end_point: str, user: str = "somebody") -> Mapping[str, str]:
    """How processes reach it, in their environment."""
    return {
        "AWS_ENDPOINT_URL": end_point,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": user,
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def spark_settings(end_point: str) -> Mapping[str, str]:
    """How a Spark session on this machine reaches it."""
    return {
        # Not spark.jars, which would copy 700 MB for every session.
        "spark.driver.extraClassPath": f"{JARS}/*",
        "spark.hadoop.fs.s3a.endpoint": end_point,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
        # Hadoop's parallel client and this server wait for each other.
        "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
        "spark.hadoop.fs.s3a.connection.expect.continue": "false",
    }


def be_away(end_point: str, seconds: float, *, control: bool = False) -> None:
    """Let the store answer 503 for a while, or only where it is asked about control directories."""
    only = "?control" if control else ""
    urllib.request.urlopen(f"{end_point}{_AWAY}{seconds}{only}").read()


def requests_made(end_point: str) -> Counter[str]:
    """How often the store was asked about control directories, by method and folder."""
    return Counter(json.load(urllib.request.urlopen(f"{end_point}{_ASKED}")))


def serve(address: str = "127.0.0.1", port: str = "0") -> None:
    """Until the process is ended."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = DomainDispatcherApplication(create_backend_app)
    until, asked = {False: 0.0, True: 0.0}, Counter[str]()

    def refuse(start: Callable[..., Any], status: str, code: str) -> Iterable[bytes]:
        start(status, [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()]

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = str(environ["PATH_INFO"])
        if path.startswith(_AWAY):
            only = environ["QUERY_STRING"] == "control"
            until[only] = time.monotonic() + float(path.removeprefix(_AWAY))
            start("200 OK", [])
            return [b""]
        if path == _ASKED:
            start("200 OK", [])
            return [json.dumps(asked).encode()]
        about = f"{path}?{environ['QUERY_STRING']}".replace("%2F", "/")
        control = _CONTROL.search(about)
        if control is not None:
            asked[f"{environ['REQUEST_METHOD']} {control['folder']}"] += 1
        if _STRANGER in environ.get("HTTP_AUTHORIZATION", ""):
            return refuse(start, "403 Forbidden", "InvalidAccessKeyId")
        away = until[False] if control is None else max(until.values())
        if time.monotonic() < away:
            return refuse(start, "503 Slow Down", "SlowDown")
        found: Iterable[bytes] = store(environ, start)
        return found

    server = make_server(address, int(port), answer, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(*sys.argv[1:])
