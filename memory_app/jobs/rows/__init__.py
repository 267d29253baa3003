"""The SQL of jobs, and nothing else."""
