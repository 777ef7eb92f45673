"""An S3-compatible server on this machine, in a process of its own: prints its port, then serves.

    python s3_server.py [ADDRESS PORT]

Without an address it listens on loopback, at a port that is free. `GET /__away__/30` lets it answer
503 for so many seconds; `GET /__requests__` tells what was asked.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

_AWAY, _ASKED = "/__away__/", "/__requests__"


def serve(address: str = "127.0.0.1", port: str = "0") -> None:
    """Until the process is ended."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = DomainDispatcherApplication(create_backend_app)
    until, asked = [0.0], Counter[str]()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = str(environ["PATH_INFO"])
        if path.startswith(_AWAY):
            until[0] = time.monotonic() + float(path.removeprefix(_AWAY))
            start("200 OK", [])
            return [b""]
        if path == _ASKED:
            start("200 OK", [])
            return [json.dumps(asked).encode()]
        if "/plait/" in f"{path}?{environ['QUERY_STRING']}".replace("%2F", "/"):
            asked[str(environ["REQUEST_METHOD"])] += 1
        if time.monotonic() < until[0]:
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>away</Message></Error>"]
        found: Iterable[bytes] = store(environ, start)
        return found

    server = make_server(address, int(port), answer, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(*sys.argv[1:])
