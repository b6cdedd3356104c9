"""The errors a user can cause; each message says what is wrong, where, and how to mend it."""


class StreamplaceError(Exception):
    """Base of every error that bad input raises."""


class UnitError(StreamplaceError):
    """A quantity whose number or unit cannot be read."""


class GraphError(StreamplaceError):
    """A stream graph that makes no sense."""


class ClusterError(StreamplaceError):
    """A cluster that makes no sense."""


class PlacementError(StreamplaceError):
    """A placement that does not fit its graph, cluster or constraints."""


class ProblemError(StreamplaceError):
    """Constraints that contradict each other or name what does not exist."""


class FormatError(StreamplaceError):
    """A file that cannot be read as what it should be, or cannot be written."""


class SettingError(StreamplaceError):
    """An option or parameter outside its range, or a name that is not registered."""
