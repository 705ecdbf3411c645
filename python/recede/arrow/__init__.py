"""Many histories at once: columns of Arrow tables, for pyarrow and for every engine that maps batches.

`Reducer` and `Stats` are callables: a `pyarrow.Table` or `RecordBatch` in, one of the same kind out. They can
be pickled, check their options when they are made, and make a value of what is wrong with a row. pyarrow comes with the
extra ``recede[arrow]``.
"""

from recede.arrow._columns import to_json
from recede.arrow._reducer import Reducer, Stats

__all__ = ["Reducer", "Stats", "to_json"]
