"""The database: engine and transactions, tables, migrations."""
