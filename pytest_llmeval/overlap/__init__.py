"""Items of benchmarks in a corpus: index of the items, search, pass over the files, and its result."""
