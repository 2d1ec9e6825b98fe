"""The boundary between the user's TOML files and the frozen domain types.

A file goes through three steps, each in modules of its own:

1. `document` reads text into a `Document`: plain data, and the line each key stands on.
2. `check` holds the data against a pydantic model (`FileModel`) whose fields are units-aware
   types of `quantity`. It reports every mistake at once, with file, line, key, value found,
   what is allowed and the nearest valid name.
3. A converter (`to_scenario`, `catalogue`, ...) turns the checked model into domain types, which
   are trusted from there on.

Nothing outside this package sees pydantic, TOML or a quantity as text.
"""
