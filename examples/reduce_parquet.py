"""Reduces the histories of Parquet files into a folder: `python examples/reduce_parquet.py OUT FILE...`."""

import sys
from pathlib import Path

import pyarrow.parquet as pq

from recede.arrow import Reducer

reducer = Reducer(max_input_tokens=32_000)  # of the column "messages"
out = Path(sys.argv[1])
for path in sys.argv[2:]:
    source = pq.ParquetFile(path)
    with pq.ParquetWriter(out / Path(path).name, reducer.schema(source.schema_arrow)) as target:
        for batch in source.iter_batches(batch_size=1_000):
            target.write_batch(reducer(batch))
