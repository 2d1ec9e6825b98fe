"""MLPerf Storage (DLIO) and MLPerf Training: workloads, result folders and logs."""
