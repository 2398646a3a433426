"""Load on the site of a coordinator: requests in turn, or event streams held open, and its memory.

  web_load.py PORT PID requests COUNT [PATH]   COUNT requests over 8 connections
  web_load.py PORT PID streams COUNT PATH      COUNT streams at once, and requests beside them
  web_load.py PORT PID pages COUNT PATH...     each page COUNT times in turn, over one connection

PID is that of assay-web, whose resident memory is printed before, between and after. docs/benchmarks/web.md
has the commands around it and what came out.
"""
import os
import socket
import ssl
import sys
import threading
import time

CONTEXT = ssl.create_default_context()
CONTEXT.check_hostname, CONTEXT.verify_mode = False, ssl.CERT_NONE


def resident_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    return CONTEXT.wrap_socket(connection)


def ask(connection, path):
    """One request over a connection that is kept. Seconds, and the status."""
    start = time.monotonic()
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        some = connection.recv(65536)
        if not some:
            raise ConnectionError("closed")
        answer += some
    head, _, body = answer.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return time.monotonic() - start, int(head[9:12])


def requests(port, pid, count, path):
    times, statuses, lock = [], {}, threading.Lock()

    def work(share):
        connection = connect(port)
        for _ in range(share):
            seconds, status = ask(connection, path)
            with lock:
                times.append(seconds)
                statuses[status] = statuses.get(status, 0) + 1

    steps = 10
    print(f"before: {resident_mb(pid):.1f} MB")
    start = time.monotonic()
    for step in range(steps):
        threads = [threading.Thread(target=work, args=(count // steps // 8,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"after {len(times)}: {resident_mb(pid):.1f} MB")
    elapsed = time.monotonic() - start
    times.sort()
    print(f"{len(times)} requests of {path} in {elapsed:.1f} s: {len(times) / elapsed:.0f}/s, "
          f"p50 {1000 * times[len(times) // 2]:.1f} ms, p99 {1000 * times[len(times) * 99 // 100]:.1f} ms, "
          f"statuses {statuses}")


def streams(port, pid, count, path):
    held = []
    print(f"before: {resident_mb(pid):.1f} MB")
    for number in range(count):
        connection = connect(port)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n".encode())
        head = connection.recv(65536)
        if b" 200 " not in head[:20]:
            print(f"stream {number}: {head[:60]!r}")
            break
        held.append(connection)
    print(f"{len(held)} streams: {resident_mb(pid):.1f} MB")
    beside = connect(port)
    times = sorted(ask(beside, "/static/app.css")[0] for _ in range(100))
    pages = sorted(ask(beside, "/")[0] for _ in range(100))
    print(f"beside them: file p50 {1000 * times[50]:.1f} ms, max {1000 * times[-1]:.1f} ms; "
          f"page p50 {1000 * pages[50]:.1f} ms, max {1000 * pages[-1]:.1f} ms")
    for connection in held:
        connection.close()
    time.sleep(3)
    print(f"closed: {resident_mb(pid):.1f} MB")


def pages(port, _pid, count, paths):
    connection = connect(port)
    for path in paths:
        times, status = [], 0
        for _ in range(count):
            seconds, status = ask(connection, path)
            times.append(1000 * seconds)
        first, rest = times[0], sorted(times[1:])
        print(f"{path}: {status}, first {first:.1f} ms, then median {rest[len(rest) // 2]:.1f} ms, "
              f"at most {rest[-1]:.1f} ms")


def main():
    port, pid, what, count = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    paths = sys.argv[5:] or ["/"]
    print(f"load average {os.getloadavg()[0]:.1f}")
    if what == "pages":
        pages(port, pid, count, paths)
    else:
        {"requests": requests, "streams": streams}[what](port, pid, count, paths[0])
    print(f"load average {os.getloadavg()[0]:.1f}")


main()
