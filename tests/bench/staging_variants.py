#!/usr/bin/env python3
"""How a dataset is best brought to a node: as files, or as tar archives, and in which codec.

    staging_variants.py BIN DISK [--samples 1024] [--edge 64] [--rounds 3]

BIN has the built assay, assay-worker and slow_fs. DISK, a folder on a disk, is made and removed.
Generates CosmoFlow's cubes, packs them each way, and fills a node's cache (assay-worker cache
stage: every file compared with its SHA-256) from the disk and from a file system that takes 5 ms
for each request; beside it cp and tar do the same without comparing anything. All variants in turn
in each round, out of memory before, until the device has the copies. Prints a table in Markdown of
medians (range). Needs root, zstd and gzip.
"""

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import time

LATENCY_MS = 5
CODECS = {"none": "tar", "gzip": "tar.gz", "zstd": "tar.zst"}


def drop(folder):
    """Brings a folder's files to the device and takes them out of memory."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def bytes_below(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run(*argv):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} has failed: {done.stderr}")


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class SlowView:
    """slow_fs over a folder, while the block lasts."""

    def __init__(self, program, folder, mountpoint):
        self.argv = [str(program), str(folder), str(mountpoint), str(LATENCY_MS)]
        self.mountpoint = mountpoint

    def __enter__(self):
        self.mountpoint.mkdir()
        self.process = subprocess.Popen(self.argv)
        while not os.path.ismount(self.mountpoint):
            if self.process.poll() is not None:
                raise SystemExit("slow_fs does not mount")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Variants:
    """The dataset, packed each way, and the commands that bring it to a node."""

    def __init__(self, options):
        self.bin = options.bin
        self.disk = options.disk
        self.target = options.disk / "node"
        self.files = options.disk / "packed" / "files"
        run(self.bin / "assay", "dataset", "generate", self.files, "--train", options.samples,
            "--eval", 16, "--edge", options.edge)
        self.bytes = bytes_below(self.files)
        self.sizes = {"files": self.bytes}
        for codec, suffix in CODECS.items():
            run(self.bin / "assay", "dataset", "pack", self.files, self.folder(suffix),
                "--codec", codec, "--shard-mib", 32)
            self.sizes[suffix] = bytes_below(self.folder(suffix))
        self.config = options.disk / "worker.conf"
        # What an agent needs beside its cache, none of which is used here.
        self.config.write_text(
            'name: "node"\nserver_address: "unix:/none"\nca_certificate_path: "/none"\n'
            f'data_directory: "{options.disk}/agent"\n'
            f'node_cache {{ directory: "{self.target}/cache" quota_gb: 1000 }}\n')

    def folder(self, suffix):
        return self.files.parent / suffix

    def assay(self, source):
        run(self.bin / "assay-worker", "cache", "stage", source, f"--config={self.config}")

    def cp(self, source):
        run("sh", "-c", f"cd {source} && find . -type d -exec mkdir -p {self.target}/{{}} \\; && "
            f"find . -type f | xargs -P8 -n32 cp --parents -t {self.target}")

    def tar(self, source):
        for folder in self.files.iterdir():  # two tars that make one folder at once may fail
            if folder.is_dir():
                (self.target / folder.name).mkdir()
        run("sh", "-c", f"ls {source}/shards/* | "
            f"xargs -P{os.cpu_count()} -n1 tar -C {self.target} -xf")

    def methods(self):
        """What, from which form, how."""
        yield "cp, 8 at once", "files", self.cp
        yield "Assay", "files", self.assay
        for suffix in CODECS.values():
            yield "tar, one for each processor", suffix, self.tar
            yield "Assay", suffix, self.assay

    def measure(self, method, source):
        """MiB of the dataset a second, and processor seconds for each GiB of it."""
        shutil.rmtree(self.target, ignore_errors=True)
        self.target.mkdir()
        drop(self.files.parent)
        cpu, begin = cpu_seconds(), time.monotonic()
        method(source)
        run("sync", "-f", self.target)
        seconds = time.monotonic() - begin
        return self.bytes / 2**20 / seconds, (cpu_seconds() - cpu) / self.bytes * 2**30


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("disk", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--edge", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    options.disk.mkdir(parents=True)  # must not be there: it is removed
    try:
        compare(Variants(options), options.rounds)
    finally:
        shutil.rmtree(options.disk)


def compare(variants, rounds):
    measured = {}
    with SlowView(variants.bin / "slow_fs", variants.files.parent,
                  variants.disk / "slow") as slow:
        for _ in range(rounds):
            for where, root in (("disk", variants.files.parent),
                                (f"{LATENCY_MS} ms a request", slow.mountpoint)):
                for name, form, method in variants.methods():
                    rate, cpu = variants.measure(method, root / form)
                    measured.setdefault((where, form, name), []).append((rate, cpu))
                    print(f"{where}, {form}, {name}: {rate:.0f} MiB/s, {cpu:.2f} CPU-s/GiB, "
                          f"load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"\n{variants.bytes / 2**20:.0f} MiB\n")
    print("| from | form | size | by | MiB/s | CPU-s/GiB |\n|---|---|---|---|---|---|")
    for (where, form, name), results in measured.items():
        rates = [rate for rate, _ in results]
        print(f"| {where} | {form} | {variants.sizes[form] / variants.bytes:.2f} | {name} | "
              f"{statistics.median(rates):.0f} ({min(rates):.0f}-{max(rates):.0f}) | "
              f"{statistics.median(cpu for _, cpu in results):.2f} |")


if __name__ == "__main__":
    main()
