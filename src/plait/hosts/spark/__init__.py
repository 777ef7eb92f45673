"""Plait inside Spark Structured Streaming: streaming DataFrames in, a streaming DataFrame out."""
