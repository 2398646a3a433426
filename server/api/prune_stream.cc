#include "server/api/prune_stream.h"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "server/api/pull_stream.h"

namespace assay::api {
namespace {

absl::Status CheckPolicy(const core::RetentionPolicy& policy) {
  if (policy.telemetry_days > 0 || policy.progress_days > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the configuration lets nothing be removed: say for how many days after the end of an entry "
      "its telemetry is kept, like retention { telemetry_days: 365 }, and restart assayd. Logs, "
      "the "
      "log of events, the audit and findings are kept for ever");
}

// One page of files is found, recorded in the log of events, removed and told; then the next.
class PruneStream final : public PullStream<v1::PruneStoreResponse> {
 public:
  PruneStream(const Backend* backend, auth::Identity identity, bool is_applied,
              runtime::Upkeep::Pruning pruning)
      : PullStream(/*follow=*/false),
        backend_(backend),
        identity_(std::move(identity)),
        is_applied_(is_applied),
        pruning_(std::move(pruning)) {}

 protected:
  void Fetch(Fetched fetched) override {
    backend_->upkeep->NextPrunable(
        pruning_, [this, fetched = std::move(fetched)](
                      absl::StatusOr<runtime::Upkeep::PruneStep> step) mutable {
          if (!step.ok()) return fetched(step.status());
          is_last_ = step->is_last;
          page_ = Page{.is_end = step->is_last};
          Take(std::make_shared<Work>(
              Work{{step->found.begin(), step->found.end()}, std::move(fetched)}));
        });
  }

 private:
  struct Work {
    std::deque<core::PrunableFiles> left;
    Fetched fetched;
  };

  std::string PolicyOf(const std::string& kind) const {
    const int days = kind == "telemetry" ? backend_->retention.telemetry_days
                                         : backend_->retention.progress_days;
    return absl::StrCat(kind, "_days: ", days);
  }

  // The files of one submission, and then the others.
  void Take(std::shared_ptr<Work> work) {
    if (work->left.empty()) return Finish(work.get());
    core::PrunableFiles files = std::move(work->left.front());
    work->left.pop_front();
    if (!is_applied_) {
      Tell(files);
      return Take(std::move(work));
    }
    core::PruneArtifacts command{.submission = files.submission,
                                 .policy = PolicyOf(files.kind),
                                 .artifacts = files.artifacts};
    backend_->core->Post(
        CommandOf(identity_, std::move(command)),
        [this, work, files = std::move(files)](const absl::StatusOr<core::Reply>& reply) mutable {
          if (!reply.ok()) return work->fetched(reply.status());
          Remove(std::move(work), std::move(files));
        });
  }

  // What the log says of them is durable.
  void Remove(std::shared_ptr<Work> work, core::PrunableFiles files) {
    std::vector<core::PrunedArtifact> artifacts = files.artifacts;
    backend_->upkeep->RemovePruned(
        pruning_, std::move(artifacts),
        [this, work, files = std::move(files)](const absl::Status& status) mutable {
          if (!status.ok()) return work->fetched(status);
          Tell(files);
          Take(std::move(work));
        });
  }

  void Tell(const core::PrunableFiles& files) {
    v1::PrunedFiles* const told = page_.messages.emplace_back().mutable_files();
    told->set_submission(absl::StrCat("submissions/", files.submission.ToString()));
    told->set_kind(files.kind);
    told->set_file_count(std::ssize(files.artifacts));
    int64_t bytes = 0;
    for (const core::PrunedArtifact& pruned : files.artifacts)
      bytes += pruned.artifact.size_bytes;
    told->set_bytes(bytes);
    file_count_ += told->file_count();
    bytes_ += bytes;
  }

  void Finish(Work* work) {
    if (is_last_) {
      v1::PruneSummary* const summary = page_.messages.emplace_back().mutable_summary();
      summary->set_is_applied(is_applied_);
      summary->set_file_count(file_count_);
      summary->set_bytes(bytes_);
      LOG(INFO) << "pruned by=" << identity_.principal << " applied=" << is_applied_
                << " files=" << file_count_ << " bytes=" << bytes_;
    }
    work->fetched(std::move(page_));
  }

  const Backend* const backend_;
  const auth::Identity identity_;
  const bool is_applied_;
  const runtime::Upkeep::Pruning pruning_;
  // One fetch at a time touches these.
  Page page_;
  bool is_last_ = false;
  int64_t file_count_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::PruneStoreResponse>* NewPruning(
    const Backend* backend, const absl::StatusOr<auth::Identity>& identity,
    const v1::PruneStoreRequest& request) {
  if (!identity.ok()) return new RefusedStream<v1::PruneStoreResponse>(identity.status());
  if (absl::Status status = CheckPolicy(backend->retention); !status.ok())
    return new RefusedStream<v1::PruneStoreResponse>(status);
  absl::StatusOr<runtime::Upkeep::Pruning> pruning =
      backend->upkeep->BeginPruning(backend->retention);
  if (!pruning.ok()) return new RefusedStream<v1::PruneStoreResponse>(pruning.status());
  auto* const stream = new PruneStream(backend, *identity, request.apply(), *std::move(pruning));
  stream->Start();
  return stream;
}

}  // namespace assay::api
