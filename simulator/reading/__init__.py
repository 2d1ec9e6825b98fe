"""The boundary between the user's TOML files and the frozen domain types.

A file goes through three steps, each in modules of its own:

1. `document` reads text into a `Document`: plain data, and the line each key stands on.
2. `check` reads the data as a table: a frozen dataclass whose annotations say what each key may
   hold (`schema.fields`, `tables`). It reports every mistake at once, with file, line, key, value
   found, what is allowed and the nearest valid name.
3. A converter (`to_scenario`, `catalogue`, ...) turns the checked table into domain types, which
   are trusted from there on.

A scenario is read once, however many candidates of it a search tries:

- The tables are the one place of a setting's name, unit, limits and documentation.
- `resolved.Draft` holds a scenario's typed sections, the profiles and the model that they name
  (`LOOK_UPS`), and what several sections settle together (`SETTLED`: accelerators used, ranks,
  batches of a rank in a step). Each of these follows from fields before it, by a pure function.
- A part of a scenario (its dataset, its loader, its notes, a check, a digest of its contents) is a
  pure function of a draft that names the fields it reads (`resolved.Part`). It gets a draft with
  these fields and no others, so that what it says is what it does.
- A candidate (`variations`) is the draft with some sections exchanged: a setting is put into its
  section, and only that section is checked again. What follows from it is settled again, and a part
  is made once for all candidates that agree in the fields it reads.
- A candidate with a mistake is read as `load_scenario` reads it, so that messages are the same.

Nothing outside this package sees TOML or a quantity as text.
"""
