"""Show what a query does: as web pages, as one file and as metrics, from its control directory.

`reading` turns files into snapshots, `views` computes what a part of a page shows, `drawing` makes
pictures and `pages` whole pages, which `server` serves. No Spark session is needed, and nothing is
written but requests for plans. Begin with `server`.
"""
