#include "server/web/rpc_stream.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"

namespace assay::web {
namespace {

constexpr absl::Duration kStreamTimeout = absl::Hours(12);  // as long as a session

}  // namespace

// Kept by the connection, through its Source, until the response ends, and by itself until gRPC is
// done. Both let go of it by the Disposal.
class RpcStreams::Stream final
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Stream(RpcStreams* streams, std::shared_ptr<Lane> lane, RpcStreamOptions options,
         std::shared_ptr<Exchange> exchange)
      : streams_(streams),
        lane_(std::move(lane)),
        options_(std::move(options)),
        stub_(lane_->client->stubs().channel),
        exchange_(std::move(exchange)) {}

  // The call itself begins when the client has the header.
  void Open(const std::shared_ptr<Stream>& self, std::shared_ptr<ChunkSource> source) {
    self_ = self;
    exchange_->Open(std::move(options_.head), std::move(source), options_.heartbeat);
  }

  void Next() {
    if (!has_begun_.exchange(true)) Begin();
    StartRead(&message_);
  }

  void Gone() {
    if (!has_begun_.exchange(true)) return Retire();
    context_.TryCancel();
    Release();
  }

  Lane* lane() const { return lane_.get(); }
  // Itself if it has not begun, and now never will; else null.
  std::shared_ptr<Stream> Cancel() {
    context_.TryCancel();
    return has_begun_.exchange(true) ? nullptr : self_;
  }
  // Nothing of gRPC follows.
  void Retire() {
    exchange_.reset();
    streams_->Remove(std::move(self_));
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Release();
    exchange_->Write(options_.format(&message_));
  }

  void OnDone(const grpc::Status& status) override {
    exchange_->Finish(options_.end(FromGrpc(status)));
    Retire();
  }

 private:
  void Begin() {
    PrepareCall(options_.client->endpoint(), kStreamTimeout, &context_);
    stub_.PrepareBidiStreamingCall(&context_, options_.method, grpc::StubOptions(), this);
    AddHold();  // reads are asked for from outside of reactions
    StartWriteLast(&options_.request, grpc::WriteOptions());
    StartCall();
  }
  void Release() {
    if (!is_released_.exchange(true)) RemoveHold();
  }

  RpcStreams* const streams_;
  const std::shared_ptr<Lane> lane_;
  RpcStreamOptions options_;
  grpc::GenericStub stub_;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Stream> self_;
  grpc::ClientContext context_;
  grpc::ByteBuffer message_;
  std::atomic<bool> has_begun_ = false;
  std::atomic<bool> is_released_ = false;
};

// What the connection has of a stream.
class RpcStreams::Source final : public ChunkSource {
 public:
  Source(Disposal* disposal, std::shared_ptr<Stream> stream)
      : disposal_(disposal), stream_(std::move(stream)) {}
  ~Source() override { disposal_->Add(std::move(stream_)); }
  void Next() override { stream_->Next(); }
  void Gone() override { stream_->Gone(); }

 private:
  Disposal* const disposal_;
  std::shared_ptr<Stream> stream_;
};

RpcStreams::~RpcStreams() {
  Stop();
}

absl::StatusOr<std::shared_ptr<RpcStreams::Lane>> RpcStreams::LaneFor(
    const std::shared_ptr<const client::Client>& owner) {
  for (const std::shared_ptr<Lane>& lane : lanes_)
    if (lane->owner == owner && lane->stream_count < kOfConnectionMax) return lane;
  // It opens no connection before it is used: nothing blocks here.
  absl::StatusOr<std::unique_ptr<client::Client>> client =
      client::Client::Connect(owner->endpoint());
  if (!client.ok()) return client.status();
  lanes_.push_back(std::make_shared<Lane>(Lane{.owner = owner, .client = *std::move(client)}));
  return lanes_.back();
}

bool RpcStreams::Start(RpcStreamOptions options, const std::shared_ptr<Exchange>& exchange) {
  std::shared_ptr<Stream> stream;
  {
    const MutexLock lock(&mutex_);
    if (is_stopping_ || streams_.size() >= count_max_) return false;
    absl::StatusOr<std::shared_ptr<Lane>> lane = LaneFor(options.client);
    if (!lane.ok()) return false;
    ++(*lane)->stream_count;
    stream = std::make_shared<Stream>(this, *std::move(lane), std::move(options), exchange);
    streams_.insert(stream.get());
  }
  stream->Open(stream, std::make_shared<Source>(&disposal_, stream));
  disposal_.Add(std::move(stream));
  return true;
}

std::vector<std::shared_ptr<RpcStreams::Stream>> RpcStreams::CancelAll() {
  std::vector<std::shared_ptr<Stream>> unbegun;
  const MutexLock lock(&mutex_);
  is_stopping_ = true;
  for (Stream* const stream : streams_)
    if (auto one = stream->Cancel(); one != nullptr) unbegun.push_back(std::move(one));
  return unbegun;
}

void RpcStreams::Stop() {
  for (const std::shared_ptr<Stream>& stream : CancelAll())
    stream->Retire();
  const MutexLock lock(&mutex_);
  while (!streams_.empty())
    gone_.Wait(&mutex_);
}

void RpcStreams::Remove(std::shared_ptr<Stream> stream) {
  const MutexLock lock(&mutex_);
  streams_.erase(stream.get());
  const auto is_its = [&stream](const auto& lane) { return lane.get() == stream->lane(); };
  if (--stream->lane()->stream_count == 0)
    lanes_.erase(std::find_if(lanes_.begin(), lanes_.end(), is_its));
  disposal_.Add(std::move(stream));
  gone_.NotifyAll();
}

size_t RpcStreams::size() const {
  const MutexLock lock(&mutex_);
  return streams_.size();
}

}  // namespace assay::web
