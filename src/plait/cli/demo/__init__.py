"""`plait demo`: a live join whose streams turn over, beside the same join with its plan frozen.

`story` tells it, `outage` makes the streams, `on_spark` runs it on Spark. Begin with `story`.
"""
