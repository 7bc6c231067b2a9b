"""Runs case files against a real proxy process and a fake model: `python -m tests.cases FOLDER_OR_FILE…`."""
