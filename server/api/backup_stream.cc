#include "server/api/backup_stream.h"

#include <utility>

#include "common/log.h"
#include "server/api/convert.h"
#include "server/api/pull_stream.h"

namespace assay::api {
namespace {

// So few messages that a client which does not read them holds no backup up, and so no read
// transaction, while which the write-ahead log cannot begin anew.
constexpr int64_t kPartsTold = 100;

class BackupStream final : public PullStream<v1::BackUpStoreResponse> {
 public:
  BackupStream(const Backend* backend, auth::Identity identity, std::string directory)
      : PullStream(/*follow=*/false),
        backend_(backend),
        identity_(std::move(identity)),
        directory_(std::move(directory)),
        backup_(backend->upkeep->BeginBackup(directory_, backend->version)) {}

 protected:
  void Fetch(Fetched fetched) override {
    backend_->upkeep->Next(backup_, [this, fetched = std::move(fetched)](
                                        absl::StatusOr<runtime::Upkeep::Step> step) mutable {
      if (step.ok() && step->is_last) return Record(*std::move(step), std::move(fetched));
      if (step.ok()) return fetched(PageOf(*std::move(step)));
      LOG(ERROR) << "backup by=" << identity_.principal << " directory=" << Quoted(directory_)
                 << " status=" << Quoted(step.status());
      fetched(step.status());
    });
  }

 private:
  // For the audit. The backup is whole whatever becomes of that.
  void Record(runtime::Upkeep::Step step, Fetched fetched) {
    core::RecordBackup command{.directory = directory_,
                               .event_seq = step.counts.event_seq,
                               .artifact_count = step.counts.artifact_count,
                               .fault_count = fault_count_ + std::ssize(step.faults)};
    backend_->core->Post(CommandOf(identity_, std::move(command)),
                         [this, step = std::move(step), fetched = std::move(fetched)](
                             const absl::StatusOr<core::Reply>& reply) mutable {
                           if (!reply.ok())
                             LOG(WARNING)
                                 << "backup not in the audit status=" << Quoted(reply.status());
                           fetched(PageOf(std::move(step)));
                         });
  }

  Page PageOf(runtime::Upkeep::Step step) {
    Page page;
    fault_count_ += std::ssize(step.faults);
    for (const core::StoredFault& fault : step.faults)
      ToProto(fault, page.messages.emplace_back().mutable_fault());
    page.is_end = step.is_last;
    const int64_t part = PartOf(step.counts);
    if (step.is_last) {
      *page.messages.emplace_back().mutable_summary() = ToProto(step.counts, fault_count_);
      LOG(INFO) << "backup by=" << identity_.principal << " directory=" << Quoted(directory_)
                << " event=" << step.counts.event_seq << " faults=" << fault_count_;
    } else if (part > told_part_) {
      told_part_ = part;
      *page.messages.emplace_back().mutable_progress() = ToProto(step.counts, fault_count_);
    }
    return page;
  }

  // Of the database, and then of the artifacts.
  static int64_t PartOf(const core::BackupCounts& counts) {
    const int64_t present_count =
        counts.linked_artifact_count + counts.copied_artifact_count + counts.kept_artifact_count;
    if (counts.artifact_count > 0)
      return kPartsTold + kPartsTold * present_count / counts.artifact_count;
    return counts.page_count == 0 ? 0 : kPartsTold * counts.copied_page_count / counts.page_count;
  }

  const Backend* const backend_;
  const auth::Identity identity_;
  const std::string directory_;
  const runtime::Upkeep::Backup backup_;
  // One fetch at a time touches these.
  int64_t fault_count_ = 0;
  int64_t told_part_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::BackUpStoreResponse>* NewBackup(
    const Backend* backend, const absl::StatusOr<auth::Identity>& identity,
    const v1::BackUpStoreRequest& request) {
  if (!identity.ok()) return new RefusedStream<v1::BackUpStoreResponse>(identity.status());
  auto* const stream = new BackupStream(backend, *identity, request.directory());
  stream->Start();
  return stream;
}

}  // namespace assay::api
