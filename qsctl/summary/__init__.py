"""The Spark pipeline over run folders: tables with a declared schema, methods between frames, one job that reads."""

import warnings

# No frame of ours goes through pandas; pyspark warns about its newest release whenever it is imported beside it.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
