"""What a machine does with its memory: numbers, figures, films, a page to step through."""
