// Entries of deploy/examples/python as users copy them, and what must be true of one that ends
// valid.

#ifndef TESTS_E2E_PROGRAM_EXAMPLE_H_
#define TESTS_E2E_PROGRAM_EXAMPLE_H_

#include <string>
#include <vector>

#include "tests/e2e/site.h"

namespace assay::testing {

// `program` is the text of a file that is put beside train.py and started in its place.
struct Example {
  std::string name = "numpy";  // or pytorch, mpi
  std::string round = "hpc-3.0.0";
  std::string dataset = "beacons";
  int nodes = 2;
  int ranks_per_node = 1;
  std::string program;
  std::string workload;  // more lines of [workload]
  std::string launcher;  // in place of the example's
};

// Writes the example into the folder `name` of the site, for the Python at `python`. Returns the
// submission file's path.
std::string WriteExample(const Site& site, const std::string& python, const std::string& name,
                         const Example& wanted);

// The example for Debian's Python, with its PyTorch or mpi4py (deploy/packages.txt), and
// mlperf-logging of the Python at `checker`.
std::string WriteDebianExample(const Site& site, const std::string& checker,
                               const std::string& name, Example wanted);

// Where the Python at `checker` has mlperf-logging.
std::string PackagesOf(const Site& site, const std::string& checker);

// Whether Debian's Python has the module.
bool HasDebianModule(const Site& site, const std::string& module);

// Plans and submits the first entry of the site, waits, exports, and looks at the evidence of the
// first run; fails the test unless all is well. `checker`: a Python with the official checker.
void ExpectValidEntry(const Site& site, const std::string& checker, const std::string& file);

// The rules of the findings of a run.
std::vector<std::string> RulesOf(const Json& run);

}  // namespace assay::testing

#endif  // TESTS_E2E_PROGRAM_EXAMPLE_H_
