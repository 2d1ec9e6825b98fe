"""Output of other tools, read into profiles, sections of scenarios and measured runs.

One module per foreign format, named after the tool, with one public function ``read(path, ...)``
(a file, several, or a folder) that returns one of:

- `Fragment`: a hardware profile or sections of a scenario as TOML text with a source and a date on
  every figure, or a table of runs as CSV;
- `MeasuredRun`: keys and measured figures of a run, which `result.measurement_set` writes as a
  measurement set (training logs, serving benchmarks);
- `Utilization`: series of samples of how busy devices were (nvidia-smi, DCGM, CloudWatch).

Converters of tables of measured runs are in ``evidence/converters``.

An importer reads what the file says and nothing else: it never predicts, fits to a prediction or
guesses a figure. `warnings` states what it leaves out or assumes.

Broken evidence raises one `InputError` that holds every problem found: file, line or key, what was
found, what is allowed. `foreign` reads files, refuses them by size before they are read, and
collects the problems of text (`Problems`) and of JSON and YAML (`Entry`). Nothing here writes: the
command line writes the result whole, or not at all.
"""
