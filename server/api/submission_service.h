// Submissions, their runs, and what happened to them.

#ifndef SERVER_API_SUBMISSION_SERVICE_H_
#define SERVER_API_SUBMISSION_SERVICE_H_

#include "assay/v1/submission_service.grpc.pb.h"

#include "server/api/services.h"

namespace assay::api {

// Reactions admit, convert, hand over and return; `backend` must outlive the server.
class SubmissionService final : public v1::SubmissionService::CallbackService {
 public:
  explicit SubmissionService(const Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* CreateSubmission(grpc::CallbackServerContext* context,
                                             const v1::CreateSubmissionRequest* request,
                                             v1::Submission* response) override;
  grpc::ServerReadReactor<v1::CreateSubmissionWithSourceRequest>* CreateSubmissionWithSource(
      grpc::CallbackServerContext* context, v1::Submission* response) override;
  grpc::ServerUnaryReactor* PlanSubmission(grpc::CallbackServerContext* context,
                                           const v1::PlanSubmissionRequest* request,
                                           v1::PlanSubmissionResponse* response) override;
  grpc::ServerUnaryReactor* GetSubmission(grpc::CallbackServerContext* context,
                                          const v1::GetSubmissionRequest* request,
                                          v1::Submission* response) override;
  grpc::ServerUnaryReactor* ListSubmissions(grpc::CallbackServerContext* context,
                                            const v1::ListSubmissionsRequest* request,
                                            v1::ListSubmissionsResponse* response) override;
  grpc::ServerUnaryReactor* CancelSubmission(grpc::CallbackServerContext* context,
                                             const v1::CancelSubmissionRequest* request,
                                             v1::Submission* response) override;
  grpc::ServerUnaryReactor* WithdrawSubmission(grpc::CallbackServerContext* context,
                                               const v1::WithdrawSubmissionRequest* request,
                                               v1::Submission* response) override;
  grpc::ServerUnaryReactor* PruneInstances(grpc::CallbackServerContext* context,
                                           const v1::PruneInstancesRequest* request,
                                           v1::Submission* response) override;
  grpc::ServerUnaryReactor* NoteSubmission(grpc::CallbackServerContext* context,
                                           const v1::NoteSubmissionRequest* request,
                                           v1::Submission* response) override;
  grpc::ServerUnaryReactor* PublishSubmission(grpc::CallbackServerContext* context,
                                              const v1::PublishSubmissionRequest* request,
                                              v1::Submission* response) override;
  grpc::ServerUnaryReactor* ExplainSubmission(grpc::CallbackServerContext* context,
                                              const v1::ExplainSubmissionRequest* request,
                                              v1::ExplainSubmissionResponse* response) override;
  grpc::ServerUnaryReactor* JoinAllocation(grpc::CallbackServerContext* context,
                                           const v1::JoinAllocationRequest* request,
                                           v1::JoinAllocationResponse* response) override;
  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext* context,
                                   const v1::GetRunRequest* request, v1::Run* response) override;
  grpc::ServerUnaryReactor* ListRuns(grpc::CallbackServerContext* context,
                                     const v1::ListRunsRequest* request,
                                     v1::ListRunsResponse* response) override;
  grpc::ServerWriteReactor<v1::Event>* WatchEvents(grpc::CallbackServerContext* context,
                                                   const v1::WatchEventsRequest* request) override;
  grpc::ServerWriteReactor<v1::RunEvent>* WatchRunEvents(
      grpc::CallbackServerContext* context, const v1::WatchRunEventsRequest* request) override;
  grpc::ServerWriteReactor<v1::ArtifactChunk>* DownloadArtifact(
      grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) override;
  grpc::ServerReadReactor<v1::ImportSubmissionRequest>* ImportSubmission(
      grpc::CallbackServerContext* context, v1::Submission* response) override;

 private:
  const Backend* const backend_;
};

}  // namespace assay::api

#endif  // SERVER_API_SUBMISSION_SERVICE_H_
