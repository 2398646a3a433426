#include "worker/agent/courier.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/agent/back_off.h"
#include "worker/agent/uploader.h"

namespace assay::agent {
namespace {

// The coordinator says ABORTED for a gap, which asking again repairs, and for a stale generation,
// which nothing does.
constexpr int kAbortedCountMax = 3;

}  // namespace

Courier::Courier(v1::WorkerService::StubInterface* stub, Endpoint endpoint, const Clock* clock,
                 Callbacks callbacks)
    : stub_(stub),
      endpoint_(std::move(endpoint)),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      thread_([this] { Loop(); }) {}

Courier::~Courier() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    changed_.NotifyAll();
  }
  slot_.Close();
  thread_.join();
}

void Courier::DeliverEvents(const RunKey& key, int32_t node_rank,
                            std::shared_ptr<const EventSpool> spool) {
  MutexLock lock(&mutex_);
  Load& load = loads_[key];
  load.node_rank = node_rank;
  load.spool = std::move(spool);
  changed_.NotifyAll();
}

void Courier::DeliverFiles(const RunKey& key, const std::vector<ArtifactFile>& files) {
  MutexLock lock(&mutex_);
  Load& load = loads_[key];
  for (const ArtifactFile& file : files)
    if (load.delivered.count(file.name) == 0) load.files.emplace(file.name, file);
  changed_.NotifyAll();
}

void Courier::Drop(const RunKey& key) {
  MutexLock lock(&mutex_);
  loads_.erase(key);
}

std::optional<Courier::Task> Courier::FindTask() const {
  for (const auto& [key, load] : loads_) {
    if (load.is_refused) continue;
    const EventStream::Source source{key, load.node_rank};
    const bool has_events = load.spool != nullptr && load.spool->durable_seq() > load.acked_seq &&
                            load.spool->durable_seq() > 0;
    if (has_events) return Task{source, load.spool, load.acked_seq, {}};
    if (!load.files.empty()) return Task{source, nullptr, 0, load.files.begin()->second};
  }
  return std::nullopt;
}

bool Courier::TakeTask(Task* task) {
  MutexLock lock(&mutex_);
  for (;;) {
    if (is_stopping_) return false;
    if (std::optional<Task> found = FindTask(); found.has_value()) {
      *task = *std::move(found);
      return true;
    }
    changed_.Wait(&mutex_);
  }
}

void Courier::NoteAck(const RunKey& key, int64_t durable_seq) {
  {
    MutexLock lock(&mutex_);
    const auto it = loads_.find(key);
    if (it == loads_.end()) return;
    if (durable_seq > it->second.acked_seq) it->second.aborted_count = 0;
    it->second.acked_seq = durable_seq;
  }
  callbacks_.on_acked(key, durable_seq);
}

absl::Status Courier::SendEvents(const Task& task) {
  const RunKey& key = task.source.key;
  int64_t acked_seq = task.acked_seq;
  if (stream_ == nullptr || stream_->source().key != key) {
    stream_.reset();  // before the next takes the slot
    stream_ = std::make_unique<EventStream>(stub_, endpoint_, task.source, &slot_);
    ASSIGN_OR_RETURN(acked_seq, stream_->Send({}));
    NoteAck(key, acked_seq);
  }
  ASSIGN_OR_RETURN(std::vector<v1::RunEvent> events, task.spool->Read(acked_seq + 1, {}));
  if (events.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(acked_seq, stream_->Send(std::move(events)));
  NoteAck(key, acked_seq);
  return absl::OkStatus();
}

absl::Status Courier::SendFile(const Task& task) {
  const RunKey& key = task.source.key;
  stream_.reset();
  absl::StatusOr<UploadedFile> uploaded = UploadedFile{.file_name = task.file.name};
  if (FileExists(task.file.path)) {
    uploaded = UploadFile(stub_, endpoint_, key, task.file, &slot_);
  } else {
    LOG(ERROR) << "run=" << key.run << " has lost its file " << task.file.path;
  }
  const absl::StatusCode code = uploaded.status().code();
  if (code == absl::StatusCode::kAlreadyExists || code == absl::StatusCode::kInvalidArgument) {
    // It has another file of that name, or will never take one like it: the rest is still wanted.
    LOG(ERROR) << "run=" << key.run << " file " << task.file.name
               << " is not taken: " << uploaded.status();
    uploaded = UploadedFile{.file_name = task.file.name};
  }
  RETURN_IF_ERROR(uploaded.status());
  {
    MutexLock lock(&mutex_);
    const auto it = loads_.find(key);
    if (it == loads_.end()) return absl::OkStatus();
    it->second.files.erase(task.file.name);
    it->second.delivered[task.file.name] = *uploaded;
  }
  callbacks_.on_uploaded(key, *uploaded);
  return absl::OkStatus();
}

absl::Status Courier::Perform(const Task& task) {
  return task.spool != nullptr ? SendEvents(task) : SendFile(task);
}

void Courier::NoteFailure(const Task& task, const absl::Status& status) {
  bool is_refused = status.code() == absl::StatusCode::kNotFound ||
                    status.code() == absl::StatusCode::kInvalidArgument ||
                    status.code() == absl::StatusCode::kPermissionDenied;
  {
    MutexLock lock(&mutex_);
    const auto it = loads_.find(task.source.key);
    if (is_stopping_ || it == loads_.end()) return;
    if (status.code() == absl::StatusCode::kAborted)
      is_refused = ++it->second.aborted_count >= kAbortedCountMax;
    it->second.is_refused = is_refused;
  }
  if (is_refused) {
    LOG(ERROR) << "run=" << task.source.key.run << " not wanted by the coordinator: " << status;
    callbacks_.on_refused(task.source.key, status);
    return;
  }
  ++failure_count_;
  if (failure_count_ == 1) LOG(WARNING) << "run=" << task.source.key.run << " delivery: " << status;
  const MonoTime end = clock_->Mono() + BackOff(failure_count_, RandomShare());
  MutexLock lock(&mutex_);
  while (!is_stopping_ && clock_->Mono() < end)
    changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(end - clock_->Mono()));
}

void Courier::Loop() {
  Task task;
  while (TakeTask(&task)) {
    const absl::Status status = Perform(task);
    if (status.ok()) {
      failure_count_ = 0;
      continue;
    }
    stream_.reset();
    NoteFailure(task, status);
  }
  stream_.reset();
}

}  // namespace assay::agent
