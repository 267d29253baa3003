"""The SQL of sleep, and nothing else."""
