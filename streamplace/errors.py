"""Errors that invalid input causes; each message states what is wrong, where, and the remedy."""


class StreamplaceError(Exception):
    """Base class of all errors that invalid input raises."""


class UnitError(StreamplaceError):
    """A quantity with an invalid number or unit."""


class GraphError(StreamplaceError):
    """An invalid stream graph."""


class ClusterError(StreamplaceError):
    """An invalid cluster."""


class PlacementError(StreamplaceError):
    """A placement that does not fit its graph, cluster or constraints."""


class ProblemError(StreamplaceError):
    """Constraints that contradict each other or contain unknown names."""


class FormatError(StreamplaceError):
    """A file that has the wrong format, or cannot be read or written."""


class SettingError(StreamplaceError):
    """An option or parameter outside its range, or a name that is not registered."""


class DefectError(StreamplaceError):
    """A result that fails its own check: a defect of streamplace, not of the input."""
