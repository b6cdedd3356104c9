"""CPU time of the threads of Flink's processes."""
