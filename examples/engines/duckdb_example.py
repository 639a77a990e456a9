"""
DuckDB
======

Rows leave a query as record batches, are adjusted on their way, and the result is queried like any
other table. Nothing is held but a few batches.
"""

from itertools import chain

import duckdb
import numpy as np
import pyarrow as pa

from altnorm import AlternatingNormalizer
from altnorm.arrow import apply_batches

# %%
# Predictions of some classifier: a validation set, and a table with one column per class.
rng = np.random.default_rng(0)
validation = rng.dirichlet([0.6, 0.3, 0.2], size=500)
labels = rng.choice(["bird", "cat", "dog"], size=500)
normalizer = AlternatingNormalizer().fit(validation, labels)

bird, cat, dog = rng.dirichlet([0.6, 0.3, 0.2], size=10_000).T
predictions = pa.table({"id": np.arange(10_000), "dog": dog, "cat": cat, "bird": bird})
connection = duckdb.connect()
connection.register("predictions", predictions)

# %%
# From the query, through the normalizer, back into DuckDB. Classes are found by name.
query = connection.sql("select * from predictions where id % 2 = 0 order by id")
reader = query.to_arrow_reader(2048)
batches = apply_batches(normalizer, reader, prediction="class")
first = next(batches)
adjusted = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
with duckdb.connect() as destination:  # the query above may still be running in the other one
    destination.register("adjusted", adjusted)
    destination.execute("create table result as select * from adjusted")
    counts = destination.sql(
        "select class, count(*) as n from result group by class order by class"
    ).fetchall()
    result = destination.sql("select * from result order by id").to_arrow_table()

for name, n in counts:
    print(f"{name:5} {n:6,}")
