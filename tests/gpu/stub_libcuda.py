#!/usr/bin/env python3
"""Makes a libcuda.so.1 that does nothing, with which cuDNN compiles engines where no driver is.

    stub_libcuda.py TOOLKIT_STUB FOLDER

TOOLKIT_STUB names the driver's functions (/usr/local/cuda/lib64/stubs/libcuda.so). The library in
FOLDER has them all: those that cuDNN asks while it plans give plausible answers, the others only
say that they succeeded. For planning alone: nothing can run on it.
"""

import pathlib
import subprocess
import sys

HANDLE = "int NAME(void** p) { *p = (void*)0x10; return 0; }"  # which nobody follows
TEXT = 'int NAME(int e, const char** s) { *s = "stub"; return 0; }'
LOOK_UP = """int NAME(const char* name, void** p, int version, unsigned long flags, int* status) {
  *p = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), name);
  if (status) *status = *p ? 0 : 1;
  return *p ? 0 : 500;
}"""


def gives(number):
    return "int NAME(int* n) { *n = %d; return 0; }" % number


def fails(code):
    return "int NAME(void) { return %d; }" % code


SUCCEEDS = fails(0)
ANSWERS = {
    "cuInit": fails(100),  # there is no device
    "cuGetExportTable": fails(500),  # there is no such thing
    "cuDriverGetVersion": gives(13000),
    "cuOccupancyMaxActiveClusters": gives(60),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": gives(1),
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": gives(1),
    "cuFuncGetAttribute": gives(128),
    "cuKernelGetAttribute": gives(128),
    "cuGetErrorString": TEXT,
    "cuGetErrorName": TEXT,
    "cuGetProcAddress": LOOK_UP.replace(", int* status", "").replace(
        "  if (status) *status = *p ? 0 : 1;\n", ""),
    "cuGetProcAddress_v2": LOOK_UP,
}
ANSWERS.update({
    name: HANDLE for name in (
        "cuLibraryLoadData", "cuLibraryGetKernel", "cuLibraryGetModule", "cuKernelGetFunction",
        "cuModuleGetFunction", "cuModuleLoadData", "cuModuleLoadDataEx", "cuCtxGetCurrent")
})


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    symbols = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], check=True, text=True,
                             capture_output=True).stdout
    names = sorted({line.split()[-1].split("@")[0] for line in symbols.splitlines()})
    source = ["#include <dlfcn.h>"]
    source += [ANSWERS.get(name, SUCCEEDS).replace("NAME", name)
               for name in names if name.startswith("cu")]
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-ldl",
                    "-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1"],
                   check=True, text=True, input="\n".join(source))


main()
