#include "tests/integration/fake_worker.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/log.h"
#include "common/secret.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::testing {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(60);
constexpr int kSynchronizeMax = 1000;
constexpr size_t kBatchLines = 500;
constexpr size_t kPieceBytes = 64 << 10;

v1::EventBatch BatchOf(const v1::DesiredState& desired, const std::vector<std::string>& lines,
                       size_t begin, int64_t first_seq) {
  v1::EventBatch batch;
  batch.set_run(desired.run());
  batch.set_generation(desired.generation());
  batch.set_node_rank(desired.spec().node_rank());
  for (size_t i = begin; i < std::min(lines.size(), begin + kBatchLines); ++i) {
    v1::RunEvent* const event = batch.add_events();
    event->set_seq(first_seq + static_cast<int64_t>(i));
    event->set_kind(v1::RunEvent::LOG_LINE);
    event->set_text(lines[i]);
    event->set_wall_us(1'700'000'000'000'000);
    event->set_line(event->seq());
  }
  return batch;
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string FromBuffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

void Await(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  CHECK(queue->Next(&tag, &ok));
}

}  // namespace

FakeWorker::FakeWorker(const Endpoint& endpoint, std::string name)
    : client_(endpoint), name_(std::move(name)) {
  status_.set_phase(v1::WorkerStatus::IDLE);
}

absl::StatusOr<v1::DesiredState> FakeWorker::Synchronize(absl::Duration poll) {
  v1::SynchronizeRequest request;
  request.set_worker(absl::StrCat("workers/", name_));
  request.set_incarnation("one");
  request.mutable_poll_timeout()->set_seconds(absl::ToInt64Seconds(poll));
  request.mutable_capabilities()->set_host_name("localhost");
  request.mutable_capabilities()->set_core_count(2);
  request.mutable_capabilities()->set_rendezvous_address("127.0.0.1:1");
  *request.mutable_status() = status_;
  if (figures_.has_value()) *request.mutable_figures() = *figures_;
  ASSIGN_OR_RETURN(const v1::SynchronizeResponse response,
                   client_.Call(client_.worker(), &v1::WorkerService::Stub::Synchronize, request));
  return response.desired();
}

absl::Status FakeWorker::AwaitRun() {
  for (int i = 0; i < kSynchronizeMax; ++i) {
    ASSIGN_OR_RETURN(const v1::DesiredState desired, Synchronize());
    if (desired.action() != v1::DesiredState::EXECUTE) continue;
    desired_ = desired;
    status_.set_phase(v1::WorkerStatus::EXECUTING);
    status_.set_run(desired.run());
    status_.set_generation(desired.generation());
    return Synchronize(absl::ZeroDuration()).status();
  }
  return absl::DeadlineExceededError("no run was assigned");
}

absl::StatusOr<int64_t> FakeWorker::SendLines(const std::vector<std::string>& lines,
                                              int64_t first_seq) {
  std::vector<v1::EventBatch> batches;
  for (size_t begin = 0; begin < lines.size(); begin += kBatchLines)
    batches.push_back(BatchOf(desired_, lines, begin, first_seq));
  return Stream(batches);
}

absl::StatusOr<int64_t> FakeWorker::SendEvent(const v1::RunEvent& event) {
  v1::EventBatch batch = BatchOf(desired_, {}, 0, 1);
  *batch.add_events() = event;
  return Stream({batch});
}

absl::StatusOr<int64_t> FakeWorker::Stream(const std::vector<v1::EventBatch>& batches) {
  grpc::ClientContext context;
  PrepareCall(client_.endpoint(), kCallTimeout, &context);
  const auto stream = client_.worker().StreamEvents(&context);
  for (const v1::EventBatch& batch : batches)
    if (!stream->Write(batch)) break;
  stream->WritesDone();
  v1::EventAck ack;
  int64_t durable_seq = 0;
  while (stream->Read(&ack))
    durable_seq = ack.durable_seq();
  RETURN_IF_ERROR(FromGrpc(stream->Finish()));
  return durable_seq;
}

absl::StatusOr<v1::ArtifactRef> FakeWorker::Upload(const std::string& file_name,
                                                   const std::string& bytes,
                                                   const std::string& sha256) {
  grpc::ClientContext context;
  PrepareCall(client_.endpoint(), kCallTimeout, &context);
  v1::UploadArtifactResponse response;
  const auto writer = client_.worker().UploadArtifact(&context, &response);
  v1::UploadArtifactRequest message;
  message.mutable_header()->set_run(desired_.run());
  message.mutable_header()->set_generation(desired_.generation());
  message.mutable_header()->set_file_name(file_name);
  message.mutable_header()->set_sha256(sha256);
  message.mutable_header()->set_size_bytes(std::ssize(bytes));
  bool is_open = writer->Write(message);
  message.clear_header();
  for (size_t begin = 0; is_open && begin < bytes.size(); begin += kPieceBytes) {
    message.set_data(bytes.substr(begin, kPieceBytes));
    is_open = writer->Write(message);
  }
  writer->WritesDone();
  RETURN_IF_ERROR(FromGrpc(writer->Finish()));
  return response.artifact();
}

absl::Status FakeWorker::WalkOneRun(const std::vector<std::string>& lines) {
  RETURN_IF_ERROR(AwaitRun());
  RETURN_IF_ERROR(SendLines(lines, 1).status());
  const std::string log = absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
  ASSIGN_OR_RETURN(
      *status_.add_artifacts(),
      Upload(absl::StrCat("result_", desired_.spec().run_number(), ".txt"), log, Sha256Hex(log)));
  return EndRun(0);
}

absl::Status FakeWorker::EndRun(int exit_code) {
  status_.set_phase(v1::WorkerStatus::FINISHED);
  status_.set_exit_code(exit_code);
  for (int i = 0; i < kSynchronizeMax; ++i) {
    ASSIGN_OR_RETURN(const v1::DesiredState desired, Synchronize());
    if (desired.action() != v1::DesiredState::FORGET) continue;
    status_.Clear();
    status_.set_phase(v1::WorkerStatus::IDLE);
    return Synchronize(absl::ZeroDuration()).status();
  }
  return absl::DeadlineExceededError("the run was never taken over");
}

void AddTinyDataset(Client* operator_client) {
  v1::AddDatasetRequest request;
  v1::Dataset* const dataset = request.mutable_dataset();
  dataset->set_name("datasets/cosmo32");
  dataset->set_benchmark("cosmoflow");
  dataset->set_path("/data/cosmo32");
  dataset->set_digest(std::string(64, 'a'));
  dataset->set_train_sample_count(524288);
  dataset->set_eval_sample_count(65536);
  (*dataset->mutable_parameters())["cube_edge"] = "128";
  dataset->set_compression("gzip");
  CHECK_OK(
      operator_client->Call(operator_client->admin(), &v1::AdminService::Stub::AddDataset, request)
          .status());
}

std::vector<v1::Event> WatchToTheEnd(Client* client, const std::string& submission) {
  v1::WatchEventsRequest request;
  request.set_submission(submission);
  request.set_follow(true);
  grpc::ClientContext context;
  PrepareCall(client->endpoint(), kCallTimeout, &context);
  const auto reader = client->submission().WatchEvents(&context, request);
  std::vector<v1::Event> events;
  v1::Event event;
  while (reader->Read(&event))
    events.push_back(event);
  CHECK_OK(FromGrpc(reader->Finish()));
  return events;
}

std::vector<std::string> WatchRunLines(Client* client, const std::string& run) {
  v1::WatchRunEventsRequest request;
  request.set_run(run);
  grpc::ClientContext context;
  PrepareCall(client->endpoint(), kCallTimeout, &context);
  const auto reader = client->submission().WatchRunEvents(&context, request);
  std::vector<std::string> lines;
  v1::RunEvent event;
  while (reader->Read(&event)) {
    CHECK(event.seq() == std::ssize(lines) + 1) << "seq=" << event.seq();
    lines.push_back(event.text());
  }
  CHECK_OK(FromGrpc(reader->Finish()));
  return lines;
}

std::string Download(Client* client, const std::string& sha256) {
  v1::DownloadArtifactRequest request;
  request.set_sha256(sha256);
  grpc::ClientContext context;
  PrepareCall(client->endpoint(), kCallTimeout, &context);
  const auto reader = client->submission().DownloadArtifact(&context, request);
  std::string bytes;
  v1::ArtifactChunk chunk;
  while (reader->Read(&chunk))
    bytes += chunk.data();
  CHECK_OK(FromGrpc(reader->Finish()));
  return bytes;
}

std::string RawCall(Client* client, const std::string& method, const std::string& request) {
  grpc::GenericStub stub(client->channel());
  grpc::ClientContext context;
  PrepareCall(client->endpoint(), kCallTimeout, &context);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, ToBuffer(request), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  Await(&queue);
  return status.ok() ? FromBuffer(response) : status.error_message();
}

std::string RawStreamCall(Client* client, const std::string& method, const std::string& request) {
  grpc::GenericStub stub(client->channel());
  grpc::ClientContext context;
  PrepareCall(client->endpoint(), kCallTimeout, &context);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  Await(&queue);
  call->Write(ToBuffer(request), nullptr);
  Await(&queue);
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  Await(&queue);
  const std::string bytes = FromBuffer(response);
  call->WritesDone(nullptr);
  Await(&queue);
  grpc::Status status;
  call->Finish(&status, nullptr);
  Await(&queue);
  return bytes;
}

absl::Status RawStatus(Client* client, const std::string& method, const std::string& request) {
  grpc::GenericStub stub(client->channel());
  grpc::ClientContext context;
  PrepareCall(client->endpoint(), kCallTimeout, &context);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  Await(&queue);
  call->WriteLast(ToBuffer(request), grpc::WriteOptions(), nullptr);
  Await(&queue);
  grpc::Status status;
  call->Finish(&status, nullptr);
  Await(&queue);
  return FromGrpc(status);
}

}  // namespace assay::testing
