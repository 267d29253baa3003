"""Words and characters of human languages: everything that depends on how people write, and on nothing else.

Text analysis (`text`), what is compared between two statements (`words`), the calendar (`calendar`), phrases around a
statement (`framing`), questions (`questions`) and secrets (`secrets`) are written once for all languages. The words
themselves stand in one data module per language, each a record of the type `language.Language`.

To add a language: write ``<name>.py`` with one ``Language(...)``, as `english` does, and add it to ``LANGUAGES`` in
`table`. A field that is left out adds nothing. Words that `others` holds for that language move into the new module.
Three things to know before:

- A row of ``units``, ``family``, ``opposites`` or ``synonyms`` begins with the English word that names the meaning
  ("day tag tage"), so that statements in two languages can be compared.
- ``stop_words`` are left out of the search terms of every text, whatever its language ("die" and "war" are English
  words too), and are part of rows that are stored: a change needs the keywords of old rows to be computed again.
- ``frame_openings`` and the fields that end in ``_patterns`` are regular expressions, tried on any text: each must be
  linear and bounded.

The extraction rules (`memory_app.extraction.rules`) are a grammar, not a list of words. They read English and take its
calendar and numbers from here.
"""
