// Events of one run on this node, kept on disk until the run is forgotten.
//
// Exactly once: every event gets the next seq, 1, 2, 3 ... without gaps; only events that are on
// stable storage can be read, so nothing is sent that a crash could take back. A record also says
// how far the sources had been read, so a restart carries on where it stopped.
//
// File: records one after another, all numbers little-endian:
//   u32 payload bytes | u32 CRC-32 of all that follows | i64 log offset | i64 log line |
//   i64 progress offset | payload, a serialized RunEvent
// A record that is cut short or damaged ends the file: it and what follows were never readable.

#ifndef WORKER_AGENT_EVENT_SPOOL_H_
#define WORKER_AGENT_EVENT_SPOOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/file.h"
#include "common/mutex.h"

namespace assay::agent {

// How far the sources of events have been read.
struct SourcePosition {
  int64_t log_offset = 0;       // bytes of result_<n>.txt
  int64_t log_line = 0;         // complete lines of it
  int64_t progress_offset = 0;  // bytes of the progress file
  bool operator==(const SourcePosition&) const = default;
};

struct BatchLimits {
  int event_count_max = 1000;  // worker_service.proto, EventBatch
  int64_t bytes_max = 1 << 20;
};

// Append, Sync and position belong to one thread; Read and the seqs are thread-safe.
class EventSpool {
 public:
  using Visitor = std::function<void(const v1::RunEvent&)>;

  // Opens or makes the file, cuts a torn tail, and shows each event kept to `visit` (may be null).
  static absl::StatusOr<std::unique_ptr<EventSpool>> Open(const std::string& path,
                                                          const Visitor& visit);

  // Gives `event` the next seq. It is in memory only, until Sync.
  void Append(v1::RunEvent event, const SourcePosition& position) ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes and fsyncs what was appended. On an error nothing is lost: call it again.
  absl::Status Sync() ABSL_LOCKS_EXCLUDED(mutex_);

  // Durable events from `first_seq` on, as many as fit the limits; at least one if there is any.
  absl::StatusOr<std::vector<v1::RunEvent>> Read(int64_t first_seq, const BatchLimits& limits) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t durable_seq() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t last_seq() const ABSL_LOCKS_EXCLUDED(mutex_);
  SourcePosition position() const { return position_; }

 private:
  EventSpool(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  absl::Status Load(const Visitor& visit);

  // Constant after Open.
  const UniqueFd fd_;
  const std::string path_;
  // Of the appending thread.
  SourcePosition position_;
  // Guarded.
  mutable Mutex mutex_;
  std::vector<int64_t> offsets_ ABSL_GUARDED_BY(mutex_);  // of each record, by seq - 1
  int64_t durable_seq_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t durable_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string pending_ ABSL_GUARDED_BY(mutex_);  // records after durable_bytes_
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_EVENT_SPOOL_H_
