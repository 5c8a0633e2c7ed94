# SPDX-License-Identifier: Apache-2.0
"""leak.py SECONDS: a Python program with a leak, for the demonstration.

Fifty times a second it does ordinary work, which leaves nothing. Every tenth
time it calls functions of the C library whose results, blocks of the heap, it
forgets: strdup, every second time also getcwd, every fourth wcsdup.
"""

import ctypes
import json
import sys
import time

libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
libc.wcsdup.restype = ctypes.c_void_p
libc.wcsdup.argtypes = (ctypes.c_wchar_p,)
libc.getcwd.restype = ctypes.c_void_p
libc.getcwd.argtypes = (ctypes.c_char_p, ctypes.c_size_t)


def work():
    rows = [{"id": i, "name": "row %d" % i, "tags": ["a"] * 100} for i in range(100)]
    return len(json.loads(json.dumps(rows)))


def leak(i):
    libc.strdup(b"x" * 199)
    if i % 2 == 0:
        libc.getcwd(None, 1024)
    if i % 4 == 0:
        libc.wcsdup("x" * 99)


end = time.monotonic() + float(sys.argv[1])
rounds = 0
while time.monotonic() < end:
    work()
    if rounds % 10 == 0:
        leak(rounds // 10)
    rounds += 1
    time.sleep(0.02)
