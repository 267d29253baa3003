"""The SQL of recall, and nothing else."""
