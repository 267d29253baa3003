"""Jobs: runs, their schedule, leases and signs of life."""
