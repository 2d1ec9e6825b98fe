"""Importers that convert the output of other tools to profiles, scenario sections and runs.

One module per foreign format, named after the tool, with one public function ``read(path, ...)``
(a file, several files, or a folder) that returns one of:

- `Fragment`: a hardware profile or sections of a scenario as TOML text with a source and a date on
  every value, or a table of runs as CSV;
- `MeasuredRun`: keys and measured metrics of a run, which `result.measurement_set` writes as a
  measurement set (training logs, serving benchmarks);
- `Utilization`: time series of device utilization (nvidia-smi, DCGM, CloudWatch).

Converters of tables of measured runs are in ``evidence/converters``.

An importer only reads the file: it never predicts, fits to a prediction or guesses a value.
`warnings` lists what it leaves out or assumes.

An invalid file raises one `InputError` with every problem: file, line or key, value found, values
allowed. `foreign` reads files, rejects oversized ones before reading them, and collects the
problems of text (`Problems`) and of JSON and YAML (`Entry`). Importers write no files: the command
line writes the complete result, or nothing.
"""
