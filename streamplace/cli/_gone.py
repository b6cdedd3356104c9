"""Options and commands of development versions that are gone; this table goes with 0.2."""

SHARED = {
    "--jobs": "jobs = 4",
    "--confidence": "confidence = 0.8",
    "--trust-profile": "trust-profile = true",
}
"""Options of both place and plan."""
CONNECTION = {
    "--cacert": "cacert = 'ca.pem'",
    "--cert": "cert = 'me.pem'",
    "--key": "key = 'me.key'",
}
MACHINES = {
    "--mips": "mips = '3 GIPS'",
    "--bandwidth": "bandwidth = '10 Gbps'",
    "--nic": "nic = ['1 Gbps', 'dev-0=100 Mbps']",
}
PROGRAM = {
    "--managed-memory": "managed-memory = '64 MiB'",
    "--flink-home": "flink-home = '/opt/flink'",
}
WINDOWS = {"--seconds": "seconds = 5", "--patience": "patience = 120"}
STARTS = {"--timeout": "timeout = 120", "--allow-non-restored": "allow-non-restored = true"}
KEYS = {
    "place": {
        "--from": "from = 'placement.json'",
        "--passes": "passes = 1000",
        "--startup": "startup = '2 s'",
        "--limit": "limit = 10",
        "--on": "on = 'ray'",
        "--dry-run": "dry-run = true",
        **SHARED,
    },
    "plan": {
        "--slot": "slot = '5 min'",
        "--move-price": "move-price = '30 min'",
        "--lag": "lag = '1 min'",
        "--restart": "restart = '5 s'",
        **SHARED,
    },
    "simulate": {"--dt": "dt = '10 ms'", "--capacity": "capacity = 1000"},
    "compare": {"--limit": "limit = 10", "--on": "on = 'ray'"},
    "flink move": {
        "--settle": "settle = 30",
        "--savepoint-timeout": "savepoint-timeout = 600",
        "--native": "native = true",
        **CONNECTION,
        **MACHINES,
        **PROGRAM,
        **STARTS,
        **WINDOWS,
    },
    "flink watch": {
        "--least-time": "least-time = 300",
        "--move-price": "move-price = '30 min'",
        "--lag": "lag = '1 min'",
        "--native": "native = true",
        "--timeout": "timeout = 120",
        **CONNECTION,
        **MACHINES,
        **PROGRAM,
        **WINDOWS,
    },
    "flink advise": {**CONNECTION, **MACHINES, **PROGRAM, **WINDOWS},
    "flink apply": {**CONNECTION, **PROGRAM, **STARTS},
    "flink cluster": {**CONNECTION, **MACHINES, "--seconds": "seconds = 10"},
    "flink profile": {**CONNECTION, **WINDOWS, "--mips": "mips = '3 GIPS'"},
    "flink cancel": CONNECTION,
    "flink verify": CONNECTION,
    "train": {"--limit": "limit = 10", "--on": "on = 'ray'"},
}
"""Options that are keys of a settings file now, with an example."""
LEARNT = "drop it: what was measured is kept in $XDG_STATE_HOME/streamplace"
SURE = "put confidence = 0.9 into a file for --settings, for a graph that was measured"
GONE: dict[tuple[str, str], str] = {
    **{
        (command, option): f"put {line} into a file for --settings"
        for command, keys in KEYS.items()
        for option, line in keys.items()
    },
    **{
        (command, "--ledger"): LEARNT
        for command in (
            "place",
            "plan",
            "flink move",
            "flink watch",
            "flink advise",
            "flink history",
        )
    },
    ("place", "--weights"): "write --placer pilot:weights=FILE",
    ("flink", "union"): "place one job beside the others, with 'flink cluster --beside'",
    ("flink move", "--trial-savepoint"): "try it with Flink's own 'flink savepoint JOB FOLDER'",
    ("flink", "savepoints"): "remove a savepoint with Flink's own 'flink savepoint -d PATH'",
    ("flink", "split"): "place one job beside the others, with 'flink cluster --beside'",
    ("flink move", "-o"): "use --json for what moves, and flink advise -o for a report of the job",
    ("flink move", "--probe"): "what crossing costs is assumed until tuples cross; drop it",
    ("flink move", "--trust-profile"): "drop it: a doubtful model makes the job try more layouts",
    ("flink move", "--accept-cold"): "drop it: cold jobs are measured all the same",
    ("flink move", "--confidence"): "drop it: layouts are tried and measured",
    **{
        (f"flink {command}", option): "drop it: a doubtful model is tried, and said to be doubtful"
        for command in ("advise", "watch")
        for option in ("--confidence", "--trust-profile")
    },
    ("flink move", "--least-rate"): "drop it: the job ends in the best layout that was measured",
    ("flink advise", "--accept-cold"): "drop it: cold jobs are measured all the same",
    (
        "flink profile",
        "--accept-cold",
    ): "drop it: cold jobs are measured all the same",
    ("flink watch", "--machines"): "let the cloud's autoscaler start and stop machines",
    ("place", "--robust"): SURE,
    ("place", "--error"): SURE,
    ("plan", "--robust"): "use --headroom",
    ("plan", "--error"): "use --headroom",
    ("plan", "--catch-up"): "use --headroom",
    ("plan", "--latency"): "use --headroom",
    ("plan", "--variability"): "use --headroom",
    ("flink advise", "--catch-up"): "use --headroom",
    ("flink advise", "--warm-up"): "the command waits until the job is steady; see --patience",
}
"""(command without its program, option or subcommand): what to use instead."""


def replacement(command_path: str, word: str) -> str | None:
    """What to use instead of an option or a subcommand that is gone, if it was one."""
    command = command_path.partition(" ")[2]
    return GONE.get((command, word))
