"""The SQL of transfer, and nothing else."""
