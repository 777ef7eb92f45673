"""What a query is doing, as web pages, as one file, and as metrics: from its control directory."""
