"""The command line: arguments in, one call, a report out; no arithmetic.

One file per verb, listed once in `main.VERBS` and imported only when called, so that
``plan --help`` costs no more than click itself. Data goes to standard output, messages to
standard error. Exit codes are in `output.Exit`.
"""
