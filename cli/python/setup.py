"""Adds the messages of the coordinator's API to what is built, made by protoc from ../../proto."""

import pathlib
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
# What a client of people needs; the agents' service is none of its business.
FILES = ("fabric", "resources", "workload", "submission_service", "admin_service", "history_service")


class BuildWithStubs(build_py):
    def run(self):
        super().run()
        plugin = shutil.which("grpc_python_plugin")
        if shutil.which("protoc") is None or plugin is None:
            raise SystemExit(
                "protoc and grpc_python_plugin are needed: apt-get install protobuf-compiler protobuf-compiler-grpc"
            )
        subprocess.run(
            [
                "protoc",
                f"--proto_path={PROTO}",
                f"--python_out={self.build_lib}",
                f"--grpc_python_out={self.build_lib}",
                f"--plugin=protoc-gen-grpc_python={plugin}",
                *(f"assay/v1/{name}.proto" for name in FILES),
            ],
            check=True,
        )
        (pathlib.Path(self.build_lib) / "assay" / "v1" / "__init__.py").touch()


setup(cmdclass={"build_py": BuildWithStubs})
