"""A report as one HTML file that loads nothing: it opens from disk, prints, fits a phone.

Modules here turn results into drawings as plain data (bars with positions, lanes with slices);
the templates write those as SVG, escaping every text. No figure is worked out in a template.
"""
