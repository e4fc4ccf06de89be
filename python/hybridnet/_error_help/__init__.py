"""Help in the texts of errors: fixes that the library does not know, short reports, fixes for errors of Python."""
