"""The SQL of bench, and nothing else."""
