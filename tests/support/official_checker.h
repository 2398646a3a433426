// Programs that are run to their end, and packages of PyPI in Python environments of their own:
// first of all the compliance checker that MLCommons publishes.

#ifndef TESTS_SUPPORT_OFFICIAL_CHECKER_H_
#define TESTS_SUPPORT_OFFICIAL_CHECKER_H_

#include <fcntl.h>
#include <sys/file.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/support/temp_dir.h"

namespace assay::testing {

struct ProgramRun {
  int exit_code = -1;  // -1: it did not start, or did not end in ten minutes
  std::string output;  // both streams
};

// Runs a program to its end.
inline ProgramRun RunToEnd(std::vector<std::string> argv) {
  const TempDir dir;
  ProgramRun run;
  const absl::StatusOr<ProcessId> process =
      Spawn({.argv = std::move(argv), .output_path = dir.Path("output")});
  if (!process.ok()) return {.output = std::string(process.status().message())};
  const absl::StatusOr<int> code = WaitForExit(*process, absl::Minutes(10));
  if (code.ok()) run.exit_code = *code;
  if (!code.ok()) StopGroup(*process, absl::ZeroDuration()).IgnoreError();
  run.output = ReadFile(dir.Path("output")).value_or("");
  return run;
}

// Packages of PyPI in a Python environment that all tests of a build share.
struct PythonPackages {
  const char* folder;                 // beside the build's programs
  const char* import;                 // a module that works if they do
  std::vector<const char*> packages;  // "name==version", the first the one that counts
};

// The Python of an environment that has them, made once; empty, with the reason in `why_not`, where
// PyPI cannot be reached. Fails the test if Python itself does not work, or PyPI answers and they
// still cannot be installed.
inline std::string ProvidePython(const PythonPackages& wanted, std::string* why_not) {
  const char* const bin = std::getenv("ASSAY_BIN_DIR");
  const std::string folder =
      JoinPath(bin == nullptr ? "build/dev/bin" : bin, absl::StrCat("../", wanted.folder));
  const std::string python = JoinPath(folder, "bin/python3");
  // One test at a time makes it.
  const UniqueFd lock(open((folder + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  EXPECT_TRUE(lock.is_open() && flock(lock.get(), LOCK_EX) == 0) << folder;
  const std::string is_there =
      absl::StrCat("from importlib.metadata import version; import ", wanted.import, ";",
                   "wanted = '", absl::StrJoin(wanted.packages, " "), "'.split();",
                   "assert all(version(p.split('==')[0]) == p.split('==')[1] for p in wanted)");
  if (FileExists(python) && RunToEnd({python, "-c", is_there}).exit_code == 0) return python;
  const ProgramRun made = RunToEnd({"/usr/bin/python3", "-m", "venv", "--clear", folder});
  // Not PyPI's fault, so no reason to skip: python3-venv is in deploy/packages.txt.
  EXPECT_EQ(made.exit_code, 0) << "no Python environment can be made: " << made.output;
  std::vector<std::string> install = {python,      "-m", "pip",       "install", "--quiet",
                                      "--retries", "1",  "--timeout", "20"};
  install.insert(install.end(), wanted.packages.begin(), wanted.packages.end());
  const ProgramRun installed = RunToEnd(std::move(install));
  if (installed.exit_code == 0) return python;
  // Only the network excuses this: where PyPI answers, the installation has to work.
  const std::string name(wanted.packages.front(), std::strcspn(wanted.packages.front(), "="));
  const std::string ask = absl::StrCat(
      "import urllib.request as r; r.urlopen('https://pypi.org/simple/", name, "/', timeout=20)");
  EXPECT_NE(RunToEnd({python, "-c", ask}).exit_code, 0)
      << "PyPI can be reached, but " << name << " cannot be installed: " << installed.output;
  *why_not = absl::StrCat("PyPI cannot be reached for ", name, ": ", installed.output);
  return "";
}

// The checker whose verdicts ours are compared with, and what it computes with. A newer one is
// taken on purpose, together with what it changes in ours.
inline std::string ProvideOfficialChecker(std::string* why_not) {
  return ProvidePython({.folder = "official_checker",
                        .import = "mlperf_logging.compliance_checker",
                        .packages = {"mlperf-logging==4.1.68", "numpy==2.4.6", "pandas==3.1.1",
                                     "PyYAML==6.0.3", "scipy==1.17.1"}},
                       why_not);
}

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_OFFICIAL_CHECKER_H_
