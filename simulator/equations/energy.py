"""Energy of a run, what the building adds, what its electricity costs, and what it emits."""

from __future__ import annotations

from simulator.units import Real


def run_energy(idle_power: Real, added_power: Real, time: Real, worked: Real) -> Real:
    """Energy of machines that are on all the time and work for a part of it.

    Parameters
    ----------
    idle_power : float or array
        Power of all machines at rest [W].
    added_power : float or array
        What they draw above it in a mean step [W].
    time : float or array
        How long they are held [s].
    worked : float or array
        How long they are in steps [s].

    Returns
    -------
    float or array
        Energy at the machines' plugs [J].

    Notes
    -----
    ``idle_power * time + added_power * worked``.

    References
    ----------
    .. [1] Fan, Weber, Barroso, "Power Provisioning for a Warehouse-sized Computer", 2007,
       https://doi.org/10.1145/1250662.1250665 (linear in utilization).

    Examples
    --------
    1 kW at rest for an hour, 4 kW more in 50 minutes of it:

    >>> round(run_energy(1000.0, 4000.0, 3600.0, 3000.0) / 3.6e6, 3)
    4.333
    """
    return idle_power * time + added_power * worked


def building_energy(energy: Real, pue: Real) -> Real:
    """Energy at the building's meter: that of the machines, cooling and losses.

    Parameters
    ----------
    energy : float or array
        Energy of the machines [J].
    pue : float or array
        Power usage effectiveness, at least 1 [1].

    Returns
    -------
    float or array
        Energy [J].

    Notes
    -----
    ``energy * pue``.

    References
    ----------
    .. [1] ISO/IEC 30134-2:2016, "Key performance indicators, part 2: Power usage effectiveness".

    Examples
    --------
    >>> building_energy(100.0, 1.5)
    150.0
    """
    return energy * pue


def emissions(energy: Real, grid: Real) -> Real:
    """What was emitted to make the electricity.

    Parameters
    ----------
    energy : float or array
        Energy at the building's meter [J].
    grid : float or array
        Emissions of the grid [kg/J].

    Returns
    -------
    float or array
        Carbon dioxide equivalents [kg].

    Notes
    -----
    ``energy * grid``; by location, before any contract for green electricity.

    References
    ----------
    .. [1] Greenhouse Gas Protocol, "Scope 2 Guidance", 2015 (location-based method).

    Examples
    --------
    1 MWh at 400 g/kWh:

    >>> round(emissions(3.6e9, 400e-3 / 3.6e6), 9)
    400.0
    """
    return energy * grid


def electricity_cost(energy: Real, tariff: Real) -> Real:
    """What electricity costs.

    Parameters
    ----------
    energy : float or array
        Energy at the building's meter [J].
    tariff : float or array
        Price of electricity [$/J].

    Returns
    -------
    float or array
        Cost [$].

    Notes
    -----
    ``energy * tariff``.

    References
    ----------
    .. [1] U.S. Energy Information Administration, Electric Power Monthly, table 5.6.A,
       https://www.eia.gov/electricity/monthly/ (price by the kilowatt-hour).

    Examples
    --------
    1 MWh at 8 cents a kWh:

    >>> round(electricity_cost(3.6e9, 0.08 / 3.6e6), 9)
    80.0
    """
    return energy * tariff
