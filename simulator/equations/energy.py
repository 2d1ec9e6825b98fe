"""Energy: of devices and runs, what a building adds, its cost and its emissions."""

from __future__ import annotations

from simulator.units import (
    Joules,
    Kilograms,
    KilogramsPerJoule,
    Real,
    Seconds,
    Usd,
    UsdPerJoule,
    Watts,
)


def run_energy(
    idle_power: Watts | Real,
    added_power: Watts | Real,
    time: Seconds | Real,
    worked: Seconds | Real,
) -> Joules | Real:
    """Return the energy of machines that are always on and work part of the time.

    ``idle_power * time + added_power * worked``. `added_power` is what a mean step draws above
    `idle_power`; machines are held for `time` and are in steps for `worked`.

    Source: Fan, Weber, Barroso, "Power Provisioning for a Warehouse-sized Computer", 2007,
    https://doi.org/10.1145/1250662.1250665 (linear in utilization).

    1 kW at rest for an hour, 4 kW more in 50 minutes of it:

    >>> round(run_energy(1000.0, 4000.0, 3600.0, 3000.0) / 3.6e6, 3)
    4.333
    """
    return idle_power * time + added_power * worked


def building_energy(energy: Joules | Real, pue: Real) -> Joules | Real:
    """Return the energy at the building's meter, with cooling and losses.

    ``energy * pue``. `pue` is the power usage effectiveness, at least 1.

    Source: ISO/IEC 30134-2:2016, "Key performance indicators, part 2: Power usage effectiveness".

    >>> building_energy(100.0, 1.5)
    150.0
    """
    return energy * pue


def emissions(energy: Joules | Real, grid: KilogramsPerJoule | Real) -> Kilograms | Real:
    """Return the carbon dioxide equivalents of the electricity.

    ``energy * grid``; by location, before any contract for green electricity.

    Source: Greenhouse Gas Protocol, "Scope 2 Guidance", 2015 (location-based method).

    1 MWh at 400 g/kWh:

    >>> round(emissions(3.6e9, 400e-3 / 3.6e6), 9)
    400.0
    """
    return energy * grid


def electricity_cost(energy: Joules | Real, tariff: UsdPerJoule | Real) -> Usd | Real:
    """Return the cost of electricity.

    ``energy * tariff``.

    Source: U.S. Energy Information Administration, Electric Power Monthly, table 5.6.A,
    https://www.eia.gov/electricity/monthly/ (price by the kilowatt-hour).

    1 MWh at 8 cents a kWh:

    >>> round(electricity_cost(3.6e9, 0.08 / 3.6e6), 9)
    80.0
    """
    return energy * tariff


def energy_per_step(
    idle_power: Watts | Real, full_power: Watts | Real, utilization: Real, step_time: Seconds | Real
) -> Joules | Real:
    """Return the energy of a step from the utilization of the devices.

    ``(idle_power + (full_power - idle_power) * utilization) * step_time``. Crude: real power
    depends on what is computed, not only on whether something is.

    Source: Fan, Weber, Barroso, "Power Provisioning for a Warehouse-sized Computer", 2007,
    https://doi.org/10.1145/1250662.1250665 (linear in utilization).

    100 W idle, 400 W busy, half the time, for 2 s:

    >>> energy_per_step(100.0, 400.0, 0.5, 2.0)
    500.0
    """
    return (idle_power + (full_power - idle_power) * utilization) * step_time


def drawn_energy(power: Watts | Real, time: Seconds | Real) -> Joules | Real:
    """Return the energy of a constant power over a time.

    ``power * time``.

    Source: BIPM, "The International System of Units", 9th edition, 2019, table 4 (1 J = 1 W s),
    https://www.bipm.org/en/publications/si-brochure.

    >>> drawn_energy(400.0, 0.25)
    100.0
    """
    return power * time
