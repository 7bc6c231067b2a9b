"""The tests of Goalkeeper; `tests.cases` is also a command."""
