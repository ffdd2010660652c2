"""The integration engine under virtual time: the engine that is, with simulated senders and receivers [CLOVERLEAF].

`behaviours` what declared procedures do, `build` an engine's settings from a scenario, `world` the driver with its
connections, `visit_log` the event log, `interruption` a run
step by step and a recovery from any of them, `crash_points` every interruption judged, `run_on_disk` with a database
that stays.
"""
