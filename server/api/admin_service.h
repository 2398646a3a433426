// What operators do: tokens, workers, datasets; and what everyone may look up.

#ifndef SERVER_API_ADMIN_SERVICE_H_
#define SERVER_API_ADMIN_SERVICE_H_

#include <utility>

#include "assay/v1/admin_service.grpc.pb.h"

#include "server/api/services.h"

namespace assay::api {

// Reactions admit, convert, hand over and return; `backend` must outlive the server.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  explicit AdminService(const Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext* context,
                                        const v1::CreateTokenRequest* request,
                                        v1::CreateTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListTokens(grpc::CallbackServerContext* context,
                                       const v1::ListTokensRequest* request,
                                       v1::ListTokensResponse* response) override;
  grpc::ServerUnaryReactor* RevokeToken(grpc::CallbackServerContext* context,
                                        const v1::RevokeTokenRequest* request,
                                        v1::Token* response) override;
  grpc::ServerUnaryReactor* CreateWebCode(grpc::CallbackServerContext* context,
                                          const v1::CreateWebCodeRequest* request,
                                          v1::CreateWebCodeResponse* response) override;
  grpc::ServerUnaryReactor* RedeemWebCode(grpc::CallbackServerContext* context,
                                          const v1::RedeemWebCodeRequest* request,
                                          v1::CreateTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* GetWorker(grpc::CallbackServerContext* context,
                                      const v1::GetWorkerRequest* request,
                                      v1::Worker* response) override;
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::Worker* response) override;
  grpc::ServerUnaryReactor* ResumeWorker(grpc::CallbackServerContext* context,
                                         const v1::ResumeWorkerRequest* request,
                                         v1::Worker* response) override;
  grpc::ServerUnaryReactor* LabelWorker(grpc::CallbackServerContext* context,
                                        const v1::LabelWorkerRequest* request,
                                        v1::Worker* response) override;
  grpc::ServerUnaryReactor* RevokeWorker(grpc::CallbackServerContext* context,
                                         const v1::RevokeWorkerRequest* request,
                                         v1::Worker* response) override;
  grpc::ServerUnaryReactor* ListAllocations(grpc::CallbackServerContext* context,
                                            const v1::ListAllocationsRequest* request,
                                            v1::ListAllocationsResponse* response) override;
  grpc::ServerUnaryReactor* GetAllocation(grpc::CallbackServerContext* context,
                                          const v1::GetAllocationRequest* request,
                                          v1::Allocation* response) override;
  grpc::ServerUnaryReactor* RequestAllocation(grpc::CallbackServerContext* context,
                                              const v1::RequestAllocationRequest* request,
                                              v1::Allocation* response) override;
  grpc::ServerUnaryReactor* ReleaseAllocation(grpc::CallbackServerContext* context,
                                              const v1::ReleaseAllocationRequest* request,
                                              v1::Allocation* response) override;
  grpc::ServerUnaryReactor* OrderCaches(grpc::CallbackServerContext* context,
                                        const v1::OrderCachesRequest* request,
                                        v1::OrderCachesResponse* response) override;
  grpc::ServerUnaryReactor* AddDataset(grpc::CallbackServerContext* context,
                                       const v1::AddDatasetRequest* request,
                                       v1::Dataset* response) override;
  grpc::ServerUnaryReactor* ListDatasets(grpc::CallbackServerContext* context,
                                         const v1::ListDatasetsRequest* request,
                                         v1::ListDatasetsResponse* response) override;
  grpc::ServerUnaryReactor* RemoveDataset(grpc::CallbackServerContext* context,
                                          const v1::RemoveDatasetRequest* request,
                                          v1::Dataset* response) override;
  grpc::ServerUnaryReactor* ListRounds(grpc::CallbackServerContext* context,
                                       const v1::ListRoundsRequest* request,
                                       v1::ListRoundsResponse* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::ServerInfo* response) override;
  grpc::ServerUnaryReactor* ListAudit(grpc::CallbackServerContext* context,
                                      const v1::ListAuditRequest* request,
                                      v1::ListAuditResponse* response) override;
  grpc::ServerWriteReactor<v1::VerifyStoreResponse>* VerifyStore(
      grpc::CallbackServerContext* context, const v1::VerifyStoreRequest* request) override;
  grpc::ServerWriteReactor<v1::BackUpStoreResponse>* BackUpStore(
      grpc::CallbackServerContext* context, const v1::BackUpStoreRequest* request) override;
  grpc::ServerWriteReactor<v1::PruneStoreResponse>* PruneStore(
      grpc::CallbackServerContext* context, const v1::PruneStoreRequest* request) override;
  grpc::ServerUnaryReactor* GetUsage(grpc::CallbackServerContext* context,
                                     const v1::GetUsageRequest* request,
                                     v1::StoreUsage* response) override;
  grpc::ServerUnaryReactor* GetDiagnostics(grpc::CallbackServerContext* context,
                                           const v1::GetDiagnosticsRequest* request,
                                           v1::Diagnostics* response) override;

 private:
  const Backend* const backend_;
};

}  // namespace assay::api

#endif  // SERVER_API_ADMIN_SERVICE_H_
