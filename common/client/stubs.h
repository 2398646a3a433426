// The coordinator's services as gRPC gives them. Only for what reads streams: the headers cost
// seconds of every compilation, and a single call is a Client::Call.

#ifndef COMMON_CLIENT_STUBS_H_
#define COMMON_CLIENT_STUBS_H_

#include <grpcpp/channel.h>

#include <memory>

#include "assay/v1/admin_service.grpc.pb.h"
#include "assay/v1/history_service.grpc.pb.h"
#include "assay/v1/submission_service.grpc.pb.h"

namespace assay::client {

struct Stubs {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::SubmissionService::Stub> submissions;
  std::unique_ptr<v1::AdminService::Stub> admin;
  std::unique_ptr<v1::HistoryService::Stub> history;
};

}  // namespace assay::client

#endif  // COMMON_CLIENT_STUBS_H_
