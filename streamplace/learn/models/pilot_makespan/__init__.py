"""Pilot for one pass: it rebuilds a schedule task by task, knowing the previous one."""
