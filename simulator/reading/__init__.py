"""Reading of the user's TOML files into frozen dataclasses.

A file goes through three steps, each in modules of its own:

1. `document` parses text into a `Document`: plain data, and the line of each key.
2. `check` reads the data as a table: a frozen dataclass whose annotations define the values of each
   key (`schema.fields`, `tables`). It reports every mistake at once, with file, line, key, value
   found, what is allowed and the nearest valid name.
3. A converter (`to_scenario`, `catalogue`, ...) turns the checked table into domain types, which
   are trusted from there on.

A scenario is read once, also for a search with many candidates:

- Name, unit, limits and documentation of a setting are in its table only.
- `unresolved.UnresolvedScenario` holds the sections of a scenario, the profiles and the model that
  they name, and values derived from several of them (accelerators used, ranks, accumulation).
  Reading a value derived from a mistake raises a `BrokenKeyError`, so that the rest can be checked.
- `checks` finds mistakes that involve several keys or sections.
- `scenario.resolve` fills in the defaults and returns the `Scenario`: each of its parts is a
  function of the sections it depends on, and is shared by all scenarios with the same sections.
- A candidate (`search.candidates`) is the scenario with some sections replaced: a setting is put
  into its section, and only that section is read again.

No code outside this package handles TOML or quantities as text.
"""
