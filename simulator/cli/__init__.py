"""Command line: parse arguments, make one call, print a report; no arithmetic.

One file per command, listed in `main.VERBS` and imported only when called, so that ``plan --help``
costs no more than click itself. Data goes to standard output, messages to standard error. Exit
codes are in `output.Exit`.
"""
