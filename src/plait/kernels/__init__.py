"""Arrays in, arrays out: windows, indexes, hashing and gathering. Knows nothing of plans."""
