"""The pages of the console and the report: pure functions of what was read and what is asked for.

`whole` has the pages, `sections` their parts; views turn reports into what a section shows.
"""
