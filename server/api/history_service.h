// Questions to the history of results.

#ifndef SERVER_API_HISTORY_SERVICE_H_
#define SERVER_API_HISTORY_SERVICE_H_

#include "assay/v1/history_service.grpc.pb.h"

#include "server/api/services.h"
#include "server/core/history.h"

namespace assay::api {

// Reactions admit, convert, hand over and return; `backend` must outlive the server.
class HistoryService final : public v1::HistoryService::CallbackService {
 public:
  explicit HistoryService(const Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* QueryResults(grpc::CallbackServerContext* context,
                                         const v1::QueryResultsRequest* request,
                                         v1::QueryResultsResponse* response) override;
  grpc::ServerUnaryReactor* SaveView(grpc::CallbackServerContext* context,
                                     const v1::SaveViewRequest* request,
                                     v1::View* response) override;
  grpc::ServerUnaryReactor* ListViews(grpc::CallbackServerContext* context,
                                      const v1::ListViewsRequest* request,
                                      v1::ListViewsResponse* response) override;
  grpc::ServerUnaryReactor* RemoveView(grpc::CallbackServerContext* context,
                                       const v1::RemoveViewRequest* request,
                                       v1::View* response) override;

 private:
  const Backend* const backend_;
};

// A question as the store takes it; its viewer is still to be filled in. INVALID_ARGUMENT.
absl::StatusOr<core::HistoryQuestion> FromProto(const v1::QueryResultsRequest& request);

v1::QueryResultsResponse ToProto(const core::HistoryAnswer& answer);

}  // namespace assay::api

#endif  // SERVER_API_HISTORY_SERVICE_H_
