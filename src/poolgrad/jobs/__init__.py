"""Pool arrays of any size, region by region, with the bits of the whole: see `Job`."""

from .job import Job
from .loop import State, pool
from .parts import Input, Output, Part, Region
from .pyramid import pyramid
from .regions import Regions

__all__ = ["Input", "Job", "Output", "Part", "Region", "Regions", "State", "pool", "pyramid"]
