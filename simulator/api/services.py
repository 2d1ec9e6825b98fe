"""Services from Python: a configuration, its predictions, its sweeps and the machines it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from simulator.errors import UnknownName
from simulator.predict import predict_service
from simulator.reading.service.axes import variants
from simulator.reading.service.scenario import ServiceReader
from simulator.report.html.service import as_page
from simulator.report.prediction import service as report
from simulator.report.render import Format, render
from simulator.report.service_studies import sized_table
from simulator.results.metrics import service_figures
from simulator.results.serving import ServicePrediction
from simulator.schema.fields import nearest_hint
from simulator.schema.goal import Plain
from simulator.schema.serving import Service
from simulator.studies.service_sizing import against_load, size, sweep


class ServiceAnswer:
    """What a service was predicted to do; printed, it is the report.

    Examples
    --------
    >>> from simulator import load
    >>> answer = load("llama3-8b-chat-h100").simulate()
    >>> answer.prediction.keeps_limits, answer["saturation.headroom"] > 1.0
    (True, True)
    """

    def __init__(self, prediction: ServicePrediction) -> None:
        self.prediction = prediction

    def __getitem__(self, metric: str) -> float | None:
        """A figure by its dotted name, in SI units; None where it has no value.

        Latencies have none beyond saturation, costs none without a price.

        Raises
        ------
        UnknownName
            If there is no such figure; names the nearest.
        """
        found = service_figures(self.prediction)
        if metric not in found:
            hint = nearest_hint(metric, tuple(found))
            msg = f"there is no figure '{metric}' of this service; {hint}"
            raise UnknownName(msg)
        return found[metric]

    @property
    def service_figures(self) -> pd.DataFrame:
        """All figures, and where they lie in four of five cases."""
        rows = [
            {"metric": name, "value": value, **{e: self.interval(name).get(e) for e in _ENDS}}
            for name, value in service_figures(self.prediction).items()
            if value is not None
        ]
        return pd.DataFrame(rows).set_index("metric")

    def interval(self, metric: str) -> Mapping[str, float | None]:
        """P10, P50 and P90 of a figure; empty where nothing about it is uncertain.

        P90 is None where the slower of the cases is beyond saturation.
        """
        return self.prediction.interval.get(metric, {})

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two."""
        return report.verdict(self.prediction)

    def save(self, path: str | Path) -> None:
        """Write the report as one HTML file, with latencies against the load."""
        page = as_page(self.prediction, against_load(self.prediction))
        Path(path).write_text(page, encoding="utf-8")

    def __str__(self) -> str:
        return render(report.document(self.prediction), Format.TABLE)

    def __repr__(self) -> str:
        return f"<ServiceAnswer to {self.prediction.service.name}: {self.verdict}>"


_ENDS = ("p10", "p90")


class ServiceConfiguration:
    """A service with settings of its own over it; nothing changes one, `with_` makes another.

    Examples
    --------
    >>> from simulator import load
    >>> chat = load("llama3-8b-chat-h100")
    >>> chat.with_({"load.rate": "2 /s"}).service.load.arrivals.rate
    2.0
    """

    def __init__(self, reader: ServiceReader) -> None:
        self._reader = reader
        self.service: Service = reader.read({})

    def with_(self, settings: Mapping[str, Plain]) -> ServiceConfiguration:
        """The same with some keys set, such as ``{"load.rate": "20 /s", "hardware.count": 2}``.

        Raises
        ------
        InputError
            With everything that is wrong with them.
        """
        return ServiceConfiguration(self._reader.over(settings))

    def simulate(self, *, seed: int = 0, intervals: bool = True) -> ServiceAnswer:
        """Predict what requests see and what the machines do.

        Parameters
        ----------
        seed : int
            Of lengths and arrivals.
        intervals : bool
            Work out how well each figure is known.
        """
        return ServiceAnswer(predict_service(self.service, seed=seed, intervals=intervals))

    def sweep(self, over: Mapping[str, str | Sequence[Plain]], *, seed: int = 0) -> pd.DataFrame:
        """Predict many configurations: one row each, with the keys' values and all figures.

        Parameters
        ----------
        over : mapping
            Keys and their values: ``{"load.rate": ["5 /s", "10 /s"], "serving.tensor": "1,2"}``.
        seed : int
            Of lengths and arrivals.

        Raises
        ------
        InputError
            If a key is none of a service.
        """
        points = [
            variants([f"{key}={values}"])
            if isinstance(values, str)
            else [{key: value} for value in values]
            for key, values in over.items()
        ]
        settings = [{k: v for part in parts for k, v in part.items()} for parts in product(*points)]
        found = sweep(self._reader.read, settings, seed=seed)
        return pd.DataFrame(
            [{**one.settings, **one.figures, "mistake": one.mistake} for one in found]
        )

    def recommend(self, *, seed: int = 0) -> pd.DataFrame:
        """The machines of its [goal] that keep its limits, the cheapest first: one row each."""
        found = size(self._reader.read, self._reader.candidates(), seed=seed)
        table = sized_table(found)
        return pd.DataFrame(table.rows, columns=table.head)

    def __repr__(self) -> str:
        changed = f" with {', '.join(self._reader.overrides)}" if self._reader.overrides else ""
        return f"<ServiceConfiguration of {self.service.name}{changed}>"
