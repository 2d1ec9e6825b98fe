"""Expressions over metrics, as goals and constraints are written: ``cost.usd_to_train < '$500'``.

A small grammar, read by recursive descent (`parse`) into a tree of frozen nodes (`tree`); nothing
is ever executed::

    condition  = both ("or" both)*
    both       = negation ("and" negation)*
    negation   = "not" negation | comparison
    comparison = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum        = product (("+" | "-") product)*
    product    = signed (("*" | "/") signed)*
    signed     = "-" signed | operand
    operand    = number | 'text' | "true" | "false" | name | "(" condition ")"

Names are the dotted ones of `metrics`, items of its tables included, and others that the caller
knows. Quoted text is a word (``fits.gpu != 'no'``) or, beside something with a unit, a quantity
(``total_time_s < '3 h'``). Where a metric has no figure a comparison is false and a sum unknown;
so it is after a division by zero.
"""

from simulator.results.expression.parse import Expression, ExpressionError, parse_expression

__all__ = ["Expression", "ExpressionError", "parse_expression"]
