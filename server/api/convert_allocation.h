// Allocations between protobuf and core.

#ifndef SERVER_API_CONVERT_ALLOCATION_H_
#define SERVER_API_CONVERT_ALLOCATION_H_

#include "absl/status/statusor.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/resources.pb.h"

#include "server/core/command.h"
#include "server/core/query.h"

namespace assay::api {

v1::Allocation ToProto(const core::Allocation& allocation);
v1::ListAllocationsResponse ToProto(const core::Page<core::Allocation>& page);

// INVALID_ARGUMENT names the field.
absl::StatusOr<core::RequestAllocation> FromProto(const v1::RequestAllocationRequest& request);

}  // namespace assay::api

#endif  // SERVER_API_CONVERT_ALLOCATION_H_
