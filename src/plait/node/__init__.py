"""One processor or site: an engine, its plan, its watermarks, and how it changes its mind."""
