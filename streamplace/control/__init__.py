"""Control: choose the plan of a job while its rates change (on Flink: `flink watch`)."""
