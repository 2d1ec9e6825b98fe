"""Evidence that other tools write, read into what `plan` takes.

One module per foreign format, named after the tool. Each has one door, ``read(path, ...)``: a file
(or several, or a folder) in, one frozen result of `result` out:

- `Fragment`: a hardware profile, or sections of a scenario, as TOML text with a source and a date
  on every figure (fio, nccl-tests, nvidia-smi, model descriptions, loader workloads);
- `MeasuredRun`: keys and measured figures of a run (training logs, serving benchmarks);
- `Utilization`: series of samples of how busy devices were (nvidia-smi, DCGM, CloudWatch).

Tables of measured runs become measurement sets; their converters are in ``evidence/converters``.

An importer reads what the file says and nothing else: it never predicts, fits to a prediction or
guesses a figure. What it leaves out, or assumes, it says in `warnings`.

Broken evidence raises one `InputError` that holds every problem found: file, line or key, what was
found, what is allowed. Files are read through `foreign`, which refuses them by size before it reads
them; JSON is walked with `foreign.Entry`, which collects problems. Nothing here writes: the command
line writes the result whole, or not at all.
"""
