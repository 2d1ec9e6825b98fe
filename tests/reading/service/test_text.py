"""The service that plan calibrate writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.reading.merge_documents import chain_of
from simulator.reading.service.figures import deviation
from simulator.reading.service.scenario import ServiceReader, fitted_service


def test_what_is_written_is_read_as_the_same_service_with_factors(tmp_path: Path) -> None:
    """Factors change figures, time beside iterations and uncertainty, and nothing else."""
    path = tmp_path / "fitted.toml"
    settings = {"calibration.engine": 2.0, "calibration.request": 0.5}
    path.write_text(fitted_service("llama3-8b-chat-h100", settings, 3), encoding="utf-8")
    fitted = ServiceReader(chain_of(str(path)), "fitted").read({})
    plain = ServiceReader(chain_of("llama3-8b-chat-h100"), "plain").read({})
    assert fitted.figures is not None
    assert plain.figures is not None
    assert fitted.figures.layer == pytest.approx(plain.figures.layer / 2.0)
    assert fitted.figures.stream == plain.figures.stream
    assert fitted.serving.request_overhead == pytest.approx(2.0 * plain.serving.request_overhead)
    assert fitted.log_sd == deviation("fitted_forward_pass")[0] < plain.log_sd
    assert fitted.load == plain.load
