"""What the fault tests are built from: a ledger outside the system, load, processes, a proxy, and an oracle."""
