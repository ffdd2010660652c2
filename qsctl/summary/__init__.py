"""The data pipeline: the only importer of pyspark."""
