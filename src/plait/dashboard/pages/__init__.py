"""The pages of the console and the report, as pure functions of snapshots and what is asked for.

`console_pages` and `report_page` have whole pages, `sections` and `sites_sections` their parts:
tables and their columns are there. They read no file and serve nothing. Begin with `sections`.
"""
