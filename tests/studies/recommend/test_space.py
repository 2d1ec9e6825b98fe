"""What a search looks at."""

from __future__ import annotations

from simulator.files.candidates import CandidateReader
from simulator.files.catalogue import Catalogue
from simulator.scenario.goal import Goal, Objective, Sense
from simulator.studies.recommend.baseline import MACHINE, ground_of
from simulator.studies.recommend.space import Space, space_of

BLOCKS_ONLY = "instance/aws/p5e.48xlarge"


def looked_at(*settings: str) -> Space:
    """The candidates of a shipped job on two machines, one of which is sold in blocks only."""
    reader = CandidateReader("resnet50-imagenet-p4d", overrides=settings)
    ground = ground_of(reader, Catalogue.default(()))
    names = ("instance/aws/p5.48xlarge", BLOCKS_ONLY)
    goal = Goal(objective=Objective(metric="cost.samples_per_usd", sense=Sense.MAXIMIZE))
    return space_of(ground, goal, [ground.machine(name) for name in names])


def test_a_machine_that_is_not_sold_as_the_job_buys_is_left_out() -> None:
    """Its bill is unknown on demand, so no candidate of it could be compared."""
    found = looked_at()
    (refused,) = found.refused
    assert refused.machine.name == BLOCKS_ONLY
    assert refused.reason.startswith("is sold as capacity-block only")
    assert {one[MACHINE] for one in found.settings} == {"instance/aws/p5.48xlarge"}


def test_it_is_looked_at_where_its_price_is_known() -> None:
    """Bought by the block, or at a price that the file states."""
    for setting in ("cost.purchase=capacity-block", "cost.price=$40/h"):
        machines = {one[MACHINE] for one in looked_at(setting).settings}
        assert BLOCKS_ONLY in machines
