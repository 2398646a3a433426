// A line of the doctor's.

#ifndef CLI_COORDINATOR_CHECK_H_
#define CLI_COORDINATOR_CHECK_H_

#include <string>

namespace assay::cli {

struct Check {
  std::string name;
  std::string state;  // ok, warn, fail
  std::string detail;
  std::string remedy = {};
};

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_CHECK_H_
