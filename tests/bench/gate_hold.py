#!/usr/bin/env python3
"""For how long a gate (docs/adr/0194) holds the first reader of a dataset.

    gate_hold.py WORKER [--files 2304] [--bytes 4096] [--of dataset|copies] [--repeats 5]

Writes a dataset into a temporary folder, takes it out of memory, closes a gate before it as a step
does and reads one file. Prints a line for each repeat: the time to close the gate, before any
clock, the time for which the reader was held, what was looked at, and the load average. Needs root
and a built assay-worker.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time

THEIR_END = 3  # kInheritedFd of common/process.h


def drop(path):
    """Takes a file out of memory."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def close_gate(worker, kind, folder):
    """The gate's process, our end of its socket, and the seconds that closing it took."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    began = time.monotonic()
    process = subprocess.Popen(
        [worker, "gate", str(os.getpid()), "", kind, str(folder)],
        preexec_fn=lambda: os.dup2(theirs.fileno(), THEIR_END),
        close_fds=False, stderr=subprocess.DEVNULL)
    theirs.close()
    answer = ours.recv(1 << 16)
    if answer != b"closed":
        raise SystemExit(f"no gate: {answer.decode()}")
    return process, ours, time.monotonic() - began


def record_of(gate):
    """What the gate says of the reader, behind its beats."""
    while True:
        message = gate.recv(1 << 16)
        if message.startswith(b"{"):
            return json.loads(message)
        if not message:
            raise SystemExit("the gate has ended without a word")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--files", type=int, default=2304)
    parser.add_argument("--bytes", type=int, default=4096)
    parser.add_argument("--of", choices=["dataset", "copies"], default="dataset")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root) / "train"
        folder.mkdir()
        files = [folder / str(i) for i in range(args.files)]
        for file in files:
            file.write_bytes(os.urandom(args.bytes))
        os.sync()
        for _ in range(args.repeats):
            for file in files:
                drop(file)
            process, gate, closing_s = close_gate(args.worker, args.of, folder)
            subprocess.run(["cat", files[0]], stdout=subprocess.DEVNULL, check=True)
            record = record_of(gate)
            process.wait()
            print(f"closed in {closing_s:.3f} s, held for {record['held_us']} us: "
                  f"{record['checked_files']} of {record['file_count']} files looked for, "
                  f"{record['device_bytes']} bytes read, exact: {record['is_exact']}; "
                  f"load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
