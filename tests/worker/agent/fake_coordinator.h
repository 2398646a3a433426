// A coordinator in the test's own process: the WorkerService over a Unix socket, with an order to
// give, a memory of what came, and faults to spell out.

#ifndef TESTS_WORKER_AGENT_FAKE_COORDINATOR_H_
#define TESTS_WORKER_AGENT_FAKE_COORDINATOR_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/sha256.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {

// Thread-safe.
class FakeCoordinator final : public v1::WorkerService::Service {
 public:
  // What it has seen and does; changed only through With.
  struct State {
    v1::DesiredState desired;
    std::function<v1::DesiredState(const v1::SynchronizeRequest&)> decide;  // overrides `desired`
    std::vector<v1::SynchronizeRequest> requests;
    grpc::Status refuse_calls = grpc::Status::OK;             // how Synchronize is refused
    std::map<std::string, std::vector<v1::RunEvent>> events;  // by run
    std::map<std::string, std::string> files;                 // by name
    int batch_count = 0;
    int break_every = 0;                  // every n-th batch: the connection breaks
    bool is_broken_after_commit = false;  // ... after storing it (else before)
    grpc::Status refuse_events = grpc::Status::OK;
    int failing_upload_count = 0;  // so many uploads fail first
  };

  FakeCoordinator() { Start(); }
  ~FakeCoordinator() override { Stop(); }

  std::string target() const { return "unix:" + dir_.Path("socket"); }

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    CHECK(server_ != nullptr);
  }
  // As if killed: what was acknowledged stays.
  void Stop() {
    {
      MutexLock lock(&mutex_);
      is_stopping_ = true;
      changed_.NotifyAll();
    }
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    MutexLock lock(&mutex_);
    is_stopping_ = false;
  }

  template <typename Function>
  auto With(Function function) {
    MutexLock lock(&mutex_);
    changed_.NotifyAll();
    return function(&state_);
  }
  // Blocks until `condition` of the state holds; false after a minute.
  bool Await(const std::function<bool(const State&)>& condition) {
    MutexLock lock(&mutex_);
    for (int waits = 0; !condition(state_); ++waits) {
      if (waits > 600) return false;
      changed_.WaitFor(&mutex_, std::chrono::milliseconds(100));
    }
    return true;
  }

  grpc::Status Synchronize(grpc::ServerContext* context, const v1::SynchronizeRequest* request,
                           v1::SynchronizeResponse* response) override {
    MutexLock lock(&mutex_);
    state_.requests.push_back(*request);
    changed_.NotifyAll();
    if (!state_.refuse_calls.ok()) return state_.refuse_calls;
    const v1::DesiredState before = Decide(*request);
    response->set_receive_wall_us(request->send_wall_us());
    response->set_receive_mono_us(RealClock().Mono().ns / 1000);
    response->set_boot_id("of the coordinator");
    // A long poll, short enough for a test to end.
    for (int waits = 0; waits < 20 && request->poll_timeout().seconds() > 0; ++waits) {
      if (is_stopping_ || context->IsCancelled()) return grpc::Status::CANCELLED;
      if (Decide(*request).SerializeAsString() != before.SerializeAsString() ||
          !IsSatisfied(*request, before))
        break;
      changed_.WaitFor(&mutex_, std::chrono::milliseconds(20));
    }
    *response->mutable_desired() = Decide(*request);
    response->set_send_wall_us(request->send_wall_us());
    response->set_send_mono_us(RealClock().Mono().ns / 1000);
    return grpc::Status::OK;
  }

  grpc::Status StreamEvents(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::EventAck, v1::EventBatch>* stream) override {
    v1::EventBatch batch;
    while (stream->Read(&batch)) {
      v1::EventAck ack;
      const grpc::Status status = Store(batch, &ack);
      if (!status.ok()) return status;
      stream->Write(ack);
    }
    return grpc::Status::OK;
  }

  grpc::Status UploadArtifact(grpc::ServerContext*,
                              grpc::ServerReader<v1::UploadArtifactRequest>* reader,
                              v1::UploadArtifactResponse* response) override {
    v1::UploadArtifactRequest request;
    v1::UploadHeader header;
    std::string bytes;
    while (reader->Read(&request)) {
      if (request.has_header()) header = request.header();
      if (request.data().size() > (64U << 10)) return {grpc::StatusCode::INVALID_ARGUMENT, "chunk"};
      bytes += request.data();
    }
    MutexLock lock(&mutex_);
    if (state_.failing_upload_count > 0) {
      --state_.failing_upload_count;
      return {grpc::StatusCode::UNAVAILABLE, "spelled failure"};
    }
    if (Sha256Hex(bytes) != header.sha256() ||
        header.size_bytes() != static_cast<int64_t>(bytes.size()))
      return {grpc::StatusCode::DATA_LOSS, "digest"};
    state_.files[header.file_name()] = bytes;
    response->mutable_artifact()->set_file_name(header.file_name());
    changed_.NotifyAll();
    return grpc::Status::OK;
  }

 private:
  v1::DesiredState Decide(const v1::SynchronizeRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_.decide ? state_.decide(request) : state_.desired;
  }
  static bool IsSatisfied(const v1::SynchronizeRequest& request, const v1::DesiredState& desired) {
    const bool is_idle = request.status().phase() == v1::WorkerStatus::IDLE;
    if (desired.action() == v1::DesiredState::IDLE) return is_idle;
    return desired.action() == v1::DesiredState::EXECUTE && !is_idle;
  }
  grpc::Status Store(const v1::EventBatch& batch, v1::EventAck* ack) {
    MutexLock lock(&mutex_);
    if (!state_.refuse_events.ok()) return state_.refuse_events;
    std::vector<v1::RunEvent>& stored = state_.events[batch.run()];
    const bool breaks = batch.events_size() > 0 && state_.break_every > 0 &&
                        ++state_.batch_count % state_.break_every == 0;
    if (breaks && !state_.is_broken_after_commit)
      return {grpc::StatusCode::UNAVAILABLE, "spelled failure"};
    for (const v1::RunEvent& event : batch.events()) {
      const auto next = static_cast<int64_t>(stored.size()) + 1;
      if (event.seq() > next) return {grpc::StatusCode::ABORTED, absl::StrCat("want ", next)};
      if (event.seq() == next) stored.push_back(event);
    }
    changed_.NotifyAll();
    if (breaks) return {grpc::StatusCode::UNAVAILABLE, "spelled failure"};
    ack->set_run(batch.run());
    ack->set_node_rank(batch.node_rank());
    ack->set_durable_seq(static_cast<int64_t>(stored.size()));
    return grpc::Status::OK;
  }

  const testing::TempDir dir_;
  Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace assay::agent

#endif  // TESTS_WORKER_AGENT_FAKE_COORDINATOR_H_
