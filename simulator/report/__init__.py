"""Reports: predictions and studies as text, Markdown, HTML, JSON, CSV, timelines and plots.

A report renders values of `results` under the names of `metrics`. It decides on words and layout,
and computes no values.
"""
