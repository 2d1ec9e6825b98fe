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
- `unresolved.UnresolvedScenario` holds the sections of a scenario, the profiles and the model that
  they name, and what they imply together (accelerators used, ranks, batches of a rank in a step).
  To read what follows from a mistake raises a `BrokenKeyError`, so that the rest can be checked.
- `checks` finds mistakes that no key has by itself.
- `scenario.resolve` fills in the defaults and gives the `Scenario`: each part of it is a function
  of the sections that it follows from, and is shared by all scenarios with the same sections.
- A candidate (`search.candidates`) is the scenario with some sections exchanged: a setting is put
  into its section, and only that section is read again.

Nothing outside this package sees TOML or a quantity as text.
"""
