"""Jobs that Flink's operator for Kubernetes owns: their resources are read and patched."""
