"""What a query is doing, as web pages, as one file, and as metrics: from its control directory.

`reading` turns the files of a control directory into values, `pages` turns values into pages,
`drawing` into pictures, and `server` serves them. It needs no Spark session and changes nothing but
requests for plans. Begin with `server`.
"""
