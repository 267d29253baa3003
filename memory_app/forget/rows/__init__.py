"""The SQL of forget, and nothing else."""
