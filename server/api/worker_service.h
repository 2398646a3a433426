// What agents call, and enrolment, by which they come to be known.

#ifndef SERVER_API_WORKER_SERVICE_H_
#define SERVER_API_WORKER_SERVICE_H_

#include "assay/v1/worker_service.grpc.pb.h"

#include "server/api/services.h"

namespace assay::api {

// Reactions admit, convert, hand over and return; `backend` must outlive the server.
class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  explicit WorkerService(const Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* context,
                                        const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response) override;
  grpc::ServerBidiReactor<v1::EventBatch, v1::EventAck>* StreamEvents(
      grpc::CallbackServerContext* context) override;
  grpc::ServerReadReactor<v1::UploadArtifactRequest>* UploadArtifact(
      grpc::CallbackServerContext* context, v1::UploadArtifactResponse* response) override;
  grpc::ServerWriteReactor<v1::ArtifactChunk>* DownloadSource(
      grpc::CallbackServerContext* context, const v1::DownloadSourceRequest* request) override;

 private:
  const Backend* const backend_;
};

class EnrolmentService final : public v1::EnrolmentService::CallbackService {
 public:
  explicit EnrolmentService(const Backend* backend) : backend_(backend) {}

  // With a token: redeems it. Without one, a worker renews the certificate that it shows.
  grpc::ServerUnaryReactor* Enrol(grpc::CallbackServerContext* context,
                                  const v1::EnrolRequest* request,
                                  v1::EnrolResponse* response) override;

 private:
  const Backend* const backend_;
};

}  // namespace assay::api

#endif  // SERVER_API_WORKER_SERVICE_H_
