"""Errors of invalid input; each message states what is wrong, where, and the remedy."""


class StreamplaceError(Exception):
    """Base class of all errors of streamplace; errors of invalid input are a `ValueError`, too."""


class UnitError(StreamplaceError, ValueError):
    """A quantity with an invalid number or unit."""


class GraphError(StreamplaceError, ValueError):
    """An invalid stream graph."""


class ClusterError(StreamplaceError, ValueError):
    """An invalid cluster."""


class PlacementError(StreamplaceError, ValueError):
    """A placement that does not fit its graph, cluster or constraints."""


class ProblemError(StreamplaceError, ValueError):
    """Constraints that contradict each other or contain unknown names."""


class FormatError(StreamplaceError, ValueError):
    """A file that has the wrong format, or cannot be read or written."""


class SettingError(StreamplaceError, ValueError):
    """An option or parameter outside its range, or a name that is not registered."""


class OptionError(SettingError):
    """An option of a placer that is outside its range, whatever the problem."""


class MissingPackageError(SettingError):
    """An optional package that is needed is not installed, or cannot be imported."""


class DefectError(StreamplaceError):
    """A result that fails its own check: a defect of streamplace, not of the input."""
