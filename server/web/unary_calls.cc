#include "server/web/unary_calls.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <utility>

#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"

namespace assay::web {

struct UnaryCalls::Call {
  explicit Call(std::shared_ptr<const client::Client> as)
      : client(std::move(as)), stub(client->stubs().channel) {}

  const std::shared_ptr<const client::Client> client;
  grpc::GenericStub stub;
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
};

UnaryCalls::~UnaryCalls() {
  Stop();
}

bool UnaryCalls::Start(std::shared_ptr<const client::Client> client, const std::string& method,
                       grpc::ByteBuffer request, Done done) {
  const auto made = std::make_shared<Call>(std::move(client));
  Call* const call = made.get();  // kept in the table until Remove
  call->request = std::move(request);
  PrepareCall(call->client->endpoint(), client::Client::kCallTimeout, &call->context);
  {
    const MutexLock lock(&mutex_);
    if (is_stopping_ || calls_.size() >= count_max_) return false;
    calls_.emplace(call, made);
  }
  call->stub.UnaryCall(&call->context, method, grpc::StubOptions(), &call->request, &call->response,
                       [this, call, done = std::move(done)](const grpc::Status& status) {
                         done(FromGrpc(status), &call->response);
                         Remove(call);
                       });
  return true;
}

void UnaryCalls::Stop() {
  const MutexLock lock(&mutex_);
  is_stopping_ = true;
  for (const auto& [call, held] : calls_)
    call->context.TryCancel();
  while (!calls_.empty())
    gone_.Wait(&mutex_);
}

void UnaryCalls::Remove(Call* call) {
  const MutexLock lock(&mutex_);
  const auto found = calls_.find(call);
  disposal_.Add(std::move(found->second));
  calls_.erase(found);
  gone_.NotifyAll();
}

}  // namespace assay::web
