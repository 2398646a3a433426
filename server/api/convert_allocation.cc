#include "server/api/convert_allocation.h"

#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/proto_archive.h"
#include "server/core/description.h"

namespace assay::api {
v1::Allocation ToProto(const core::Allocation& allocation) {
  return Described<v1::Allocation>(allocation);
}

v1::ListAllocationsResponse ToProto(const core::Page<core::Allocation>& page) {
  v1::ListAllocationsResponse response;
  for (const core::Allocation& allocation : page.items)
    *response.add_allocations() = ToProto(allocation);
  response.set_next_page_token(page.next_page_token);
  return response;
}

absl::StatusOr<core::RequestAllocation> FromProto(const v1::RequestAllocationRequest& request) {
  if (!request.request_id().empty()) RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  core::RequestAllocation command;
  command.request_id = request.request_id();
  command.reason = request.reason();
  ASSIGN_OR_RETURN(command.spec,
                   ReadDescribed<core::AllocationSpec>(request.allocation(), "allocation"));
  return command;
}

}  // namespace assay::api
