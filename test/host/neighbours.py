"""neighbours.py PATH: processes of another user of the host. Some have a socket's path in their arguments, as the processes of a guest do.
Some keep the lock of their memory, for which readers of their arguments wait. Prints `held SECONDS`, the processor time for which a lock is
kept once, `ready`, and `killed PID` for each process that it has replaced."""
import ctypes
import mmap
import os
import sys
import time

NAMED = 30
LOCKED = 3
# The one page of zeros, again and again: only page tables take memory.
BYTES = 2 << 30
MADV_POPULATE_READ = 22

running = {}


def start(work):
    pid = os.fork()
    if pid == 0:
        work()
    running[pid] = work


def named():
    os.execv("/bin/sh", ["sh", "-c", "kill -STOP $$", "sh", "--socket", sys.argv[1]])


def protect(protection):
    """Keeps the lock until the protection of every page has changed."""
    libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(BYTES), protection)


def locked():
    while True:
        protect(mmap.PROT_READ)
        protect(mmap.PROT_READ | mmap.PROT_WRITE)


os.nice(19)
for _ in range(NAMED):
    start(named)
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
memory.madvise(MADV_POPULATE_READ)
# With a page of its own, a child gets a copy of the page tables.
memory[0] = 1
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
begun = time.thread_time()
protect(mmap.PROT_READ)
print("held", round(time.thread_time() - begun, 3), flush=True)
protect(mmap.PROT_READ | mmap.PROT_WRITE)
for _ in range(LOCKED):
    start(locked)
print("ready", flush=True)
while True:
    pid, _ = os.wait()
    print("killed", pid, flush=True)
    start(running.pop(pid))
