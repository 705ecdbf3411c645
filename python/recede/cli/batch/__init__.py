"""`recede batch`: many histories in files of any size, one process for each core, or a cluster."""
