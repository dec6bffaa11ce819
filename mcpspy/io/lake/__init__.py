"""The lake: sessions as Parquet files, and SQL over them by DuckDB (extra `lake`)."""
