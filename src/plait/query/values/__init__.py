"""The meaning of operators on Arrow columns: arrays in, arrays out."""
