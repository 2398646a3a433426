// How faults of what the coordinator keeps are shown.

#ifndef CLI_ADMIN_STORE_FAULT_H_
#define CLI_ADMIN_STORE_FAULT_H_

#include <cstddef>
#include <vector>

#include "assay/v1/admin_service.pb.h"

#include "cli/terminal/print.h"

namespace assay::cli {

// Shown; all are counted.
inline constexpr size_t kFaultsMax = 10000;

inline Json FaultJson(const v1::StoreFault& fault) {
  return {{"file", fault.file()}, {"object", fault.object()}, {"problem", fault.problem()}};
}

inline std::vector<Column> FaultColumns() {
  return {{"FILE", "file"}, {"OBJECT", "object"}, {"PROBLEM", "problem"}};
}

}  // namespace assay::cli

#endif  // CLI_ADMIN_STORE_FAULT_H_
