"""Pictures: each function draws one, takes ``ax=`` and returns the matplotlib axes it drew on.

Pictures show frames and compute nothing that is not drawing: one palette that is safe for the colour-blind, a unit on
every axis, labels at the lines, no pie, no second y axis.
"""

from joulebook.plots.alignment import alignment
from joulebook.plots.calibration import calibration
from joulebook.plots.campaign import campaign
from joulebook.plots.convergence import convergence
from joulebook.plots.days import days
from joulebook.plots.decomposition import decomposition
from joulebook.plots.drivers import drivers
from joulebook.plots.energy_bar import energy_bar
from joulebook.plots.sweet_spot import sweet_spot
from joulebook.plots.timeline import timeline
from joulebook.plots.weeks import weeks

__all__ = [
    "alignment",
    "calibration",
    "campaign",
    "convergence",
    "days",
    "decomposition",
    "drivers",
    "energy_bar",
    "sweet_spot",
    "timeline",
    "weeks",
]
