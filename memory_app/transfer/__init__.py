"""Transfer: snapshots, checkpoints, exports and moves."""
