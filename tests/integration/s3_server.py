"""The object store of the workshop, as a script."""

from __future__ import annotations

import sys

from plait_lab.object_store import serve

if __name__ == "__main__":
    serve(*sys.argv[1:])
