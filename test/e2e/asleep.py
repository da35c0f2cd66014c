# SPDX-License-Identifier: BSD-3-Clause
"""Detects that a program has done all it can do: its threads sleep and nothing is pending for them.

Used by tests and by the small programs that they run, which need "the other one waits now" as an
event. A thread that is ready to run counts as awake, however busy the machine is.
"""

import os
import time

LOOK_S = 0.01


def look(pid, tid):
    """{thread: (state, number of context switches)} of a process and its descendants."""
    seen = {}
    try:
        threads = [str(tid)] if tid else os.listdir(f'/proc/{pid}/task')
    except FileNotFoundError:
        return seen     # it has ended
    for thread in threads:
        folder = f'/proc/{pid}/task/{thread}'
        try:
            with open(f'{folder}/status', encoding='utf-8', errors='replace') as f:
                fields = dict(line.split(':\t', 1) for line in f if ':\t' in line)
            with open(f'{folder}/children', encoding='ascii') as f:
                children = f.read().split()
            seen[thread] = fields['State'][0], *(v for k, v in fields.items() if 'switches' in k)
            for child in children if not tid else []:
                seen.update(look(child, None))
        except OSError:
            pass        # it has ended
    return seen


def wait_asleep(pid='self', tid=None):
    """Wait until all threads of a process and its descendants sleep; with *tid*, only that one."""
    last = None
    while (now := look(pid, tid)) != last or any(state in 'RD' for state, *_ in now.values()):
        last = now
        time.sleep(LOOK_S)


def wait_thread(thread):
    """Wait until a Python thread of this process sleeps or has ended."""
    wait_asleep(tid=thread.native_id)
