"""How a database comes to the schema that the code expects: revisions, which stack, and one script that repeats.

`memory migrate` does in one transaction, one migrator at a time: ``base.sql``, the revisions that are missing,
``access.sql``. A revision makes or changes tables, columns, constraints and indexes, and runs once. Rights, policies,
functions and triggers stand in ``access.sql`` alone, which runs every time and must be safe to repeat. Before all that,
``memory_app/db/prerequisites.py`` sees to roles and pgvector.

To change a table

1. Change its file in ``memory_app/db/tables/``. A new column stands behind the last one, where ``ALTER TABLE`` puts it.
2. Add ``versions/000N_what_it_does.py`` with ``revision = "000N"``, ``down_revision`` the newest one before it, and an
   ``upgrade`` that does the same to a database that is there. Never edit a revision that has landed. When somebody else
   landed the same number meanwhile, take the next one.
3. Run ``python -m tests.manifest``, which writes what doctor expects to ``schema.txt``, and read its diff.
4. Run ``pytest tests/integration/db/test_schema.py tests/integration/db/test_catalog.py``: they compare models,
   migrated database and ``schema.txt``.

A new table needs no more: rights of the application and row-level security follow from the models. What the finder may
see of it is granted in ``access.sql``.

To change a function, a right or a policy, edit ``access.sql`` and do 3 and 4. Only a function whose result or arguments
change needs a revision as well, which drops the old form: ``op.execute("DROP FUNCTION IF EXISTS due_runs(integer)")``.
If the release before still calls that form, keep it in ``access.sql`` beside the new one and drop it a release later.

Expand, then contract

API and workers of the release before go on while and after a database is migrated, so a revision may only add: a column
that is nullable or has a constant default, a table, an index, a constraint that holds for what the old code writes too.
What is no longer used is dropped one release later. A constraint on a big table is added ``NOT VALID`` and validated by
a second statement.

An index on a table that may be big is made with ``CREATE INDEX IF NOT EXISTS``, since it stops writers while it is
built: operators of big databases build it before, ``CONCURRENTLY``, and the changelog tells them the statement.

A revision does not change rows: under forced row-level security an owner who is no superuser sees none of them. Let
the code that reads treat the old form, or a job rewrite it.
"""
