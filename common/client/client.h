// The coordinator as a program sees it that acts for people: blocking calls with deadlines, and
// messages that say what to do when nobody answers.

#ifndef COMMON_CLIENT_CLIENT_H_
#define COMMON_CLIENT_CLIENT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/history_service.pb.h"
#include "assay/v1/submission_service.pb.h"

#include "common/rpc/endpoint.h"

namespace assay::client {

// `status`, of a call of the coordinator at `endpoint`, with what people need to know: UNAVAILABLE,
// DEADLINE_EXCEEDED and UNAUTHENTICATED name the endpoint or the remedy; others are as they came.
absl::Status Explain(const Endpoint& endpoint, const absl::Status& status);

// What gRPC gives to talk with (common/client/stubs.h), for those who read streams. The others need
// messages only.
struct Stubs;

// Thread-safe: any number of calls may be on their way.
class Client {
 public:
  // Opens a channel, and does not wait for the coordinator. INVALID_ARGUMENT if the endpoint lacks
  // what its transport needs (common/rpc/channel.h).
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const Endpoint& endpoint);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Stubs& stubs() const { return *stubs_; }
  const Endpoint& endpoint() const { return endpoint_; }

  static constexpr absl::Duration kCallTimeout = absl::Seconds(30);
  static constexpr absl::Duration kRetryFor = absl::Seconds(10);

  // One call; its request says which. The status has a message for people; UNAVAILABLE names the
  // endpoint and the remedy.
  absl::StatusOr<v1::CreateTokenResponse> Call(const v1::CreateTokenRequest& request,
                                               absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListTokensResponse> Call(const v1::ListTokensRequest& request,
                                              absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Token> Call(const v1::RevokeTokenRequest& request,
                                 absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::CreateWebCodeResponse> Call(const v1::CreateWebCodeRequest& request,
                                                 absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::CreateTokenResponse> Call(const v1::RedeemWebCodeRequest& request,
                                               absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListWorkersResponse> Call(const v1::ListWorkersRequest& request,
                                               absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Worker> Call(const v1::GetWorkerRequest& request,
                                  absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Worker> Call(const v1::DrainWorkerRequest& request,
                                  absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Worker> Call(const v1::ResumeWorkerRequest& request,
                                  absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Worker> Call(const v1::LabelWorkerRequest& request,
                                  absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Worker> Call(const v1::RevokeWorkerRequest& request,
                                  absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::OrderCachesResponse> Call(const v1::OrderCachesRequest& request,
                                               absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListAllocationsResponse> Call(const v1::ListAllocationsRequest& request,
                                                   absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Allocation> Call(const v1::GetAllocationRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Allocation> Call(const v1::RequestAllocationRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Allocation> Call(const v1::ReleaseAllocationRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Dataset> Call(const v1::AddDatasetRequest& request,
                                   absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListDatasetsResponse> Call(const v1::ListDatasetsRequest& request,
                                                absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Dataset> Call(const v1::RemoveDatasetRequest& request,
                                   absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListRoundsResponse> Call(const v1::ListRoundsRequest& request,
                                              absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ServerInfo> Call(const v1::GetServerInfoRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::StoreUsage> Call(const v1::GetUsageRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Diagnostics> Call(const v1::GetDiagnosticsRequest& request,
                                       absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListAuditResponse> Call(const v1::ListAuditRequest& request,
                                             absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Submission> Call(const v1::CreateSubmissionRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::PlanSubmissionResponse> Call(const v1::PlanSubmissionRequest& request,
                                                  absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Submission> Call(const v1::GetSubmissionRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListSubmissionsResponse> Call(const v1::ListSubmissionsRequest& request,
                                                   absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Submission> Call(const v1::CancelSubmissionRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Submission> Call(const v1::WithdrawSubmissionRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Submission> Call(const v1::PublishSubmissionRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Submission> Call(const v1::NoteSubmissionRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Submission> Call(const v1::PruneInstancesRequest& request,
                                      absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::JoinAllocationResponse> Call(const v1::JoinAllocationRequest& request,
                                                  absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ExplainSubmissionResponse> Call(const v1::ExplainSubmissionRequest& request,
                                                     absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::Run> Call(const v1::GetRunRequest& request,
                               absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListRunsResponse> Call(const v1::ListRunsRequest& request,
                                            absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::QueryResultsResponse> Call(const v1::QueryResultsRequest& request,
                                                absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::View> Call(const v1::SaveViewRequest& request,
                                absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::ListViewsResponse> Call(const v1::ListViewsRequest& request,
                                             absl::Duration timeout = kCallTimeout) const;
  absl::StatusOr<v1::View> Call(const v1::RemoveViewRequest& request,
                                absl::Duration timeout = kCallTimeout) const;

  // As Call, but while the coordinator is away it is tried again for up to kRetryFor. Only for
  // requests that may arrive twice: reads, and those with a request_id.
  template <class Request>
  auto CallRetrying(const Request& request) const {
    const absl::Time deadline = absl::Now() + kRetryFor;
    while (true) {
      auto response = Call(request);
      if (!absl::IsUnavailable(response.status()) || !WaitUntilReachable(deadline)) return response;
    }
  }

  // Blocks until the channel is connected. False if `deadline` passes first.
  bool WaitUntilReachable(absl::Time deadline) const;

  // `status` with what people need to know.
  absl::Status Explain(const absl::Status& status) const;

 private:
  Client(Endpoint endpoint, std::unique_ptr<Stubs> stubs);

  const Endpoint endpoint_;
  const std::unique_ptr<Stubs> stubs_;
};

}  // namespace assay::client

#endif  // COMMON_CLIENT_CLIENT_H_
