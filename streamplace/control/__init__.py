"""Control: which of several plans a job runs while its rates change (on Flink: `flink watch`)."""
