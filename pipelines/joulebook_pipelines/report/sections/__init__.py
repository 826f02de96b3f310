"""The reader's questions in order, one module each."""
