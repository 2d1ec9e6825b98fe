"""Reports of services: latencies, limits, needs, changes and calibrations."""
