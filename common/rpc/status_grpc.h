// absl::Status from and to grpc::Status: the codes have the same numbers, the types differ.

#ifndef COMMON_RPC_STATUS_GRPC_H_
#define COMMON_RPC_STATUS_GRPC_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace assay {

inline absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()),
                      std::string(status.message()));
}

}  // namespace assay

#endif  // COMMON_RPC_STATUS_GRPC_H_
