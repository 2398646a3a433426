#include "server/api/submission_streams.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/foreign_file.h"
#include "common/status.h"
#include "server/api/artifact_stream.h"
#include "server/api/convert.h"
#include "server/api/names.h"
#include "server/api/published_view.h"
#include "server/api/pull_stream.h"

namespace assay::api {
namespace {

// Messages of one fetch: what a slow client keeps in memory.
constexpr int32_t kPageEvents = 100;

// A stream that is woken by commits.
template <typename Message>
class WatchStream : public PullStream<Message> {
 public:
  WatchStream(const Backend* backend, auth::Identity identity, bool follow)
      : PullStream<Message>(follow), backend_(backend), identity_(std::move(identity)) {}

 protected:
  // Call once, before Start.
  void Hook(core::SubmissionId submission) {
    ticket_ = backend_->watchers->Subscribe(submission, [this](int64_t) { this->Wake(); });
  }
  absl::Status MayContinue() const override { return backend_->guard->Recheck(identity_); }
  void Unhook() override {
    if (ticket_.has_value()) backend_->watchers->Unsubscribe(*ticket_);
  }

  const Backend* const backend_;
  const auth::Identity identity_;

 private:
  std::optional<runtime::Watchers::Ticket> ticket_;
};

// ------------------------------------------------------------------------------------- WatchEvents

class EventWatch final : public WatchStream<v1::Event> {
 public:
  EventWatch(const Backend* backend, auth::Identity identity, bool follow, int64_t after_seq)
      : WatchStream(backend, std::move(identity), follow), after_seq_(after_seq) {}

  void Begin(const v1::WatchEventsRequest& request) {
    const absl::Status status = Check(request);
    if (!status.ok()) return Refuse(status);
    if (submission_.is_none()) {
      Hook(submission_);
      return Start();
    }
    backend_->queries->GetDisclosure(
        submission_, [this](const absl::StatusOr<core::Disclosure>& disclosure) {
          const absl::Status visible =
              CheckVisible(*backend_, identity_, kWatchEvents, disclosure, NameOf(submission_))
                  .status();
          if (!visible.ok()) return Refuse(visible);
          Hook(submission_);
          Start();
        });
  }

 protected:
  void Fetch(Fetched fetched) override {
    if (submission_.is_none()) return FetchEvents(/*is_over=*/false, std::move(fetched));
    // Whether it is over is asked first: what it did before that is read after it.
    backend_->queries->GetSubmission(
        submission_,
        [this, fetched = std::move(fetched)](absl::StatusOr<core::Submission> found) mutable {
          if (!found.ok()) return fetched(found.status());
          FetchEvents(core::IsTerminal(found->state), std::move(fetched));
        });
  }

 private:
  absl::Status Check(const v1::WatchEventsRequest& request) {
    if (request.after_seq() < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("after_seq is ", request.after_seq(), ": give 0 for the beginning"));
    if (!request.submission().empty()) {
      ASSIGN_OR_RETURN(submission_, ParseSubmissionName(request.submission()));
    }
    return absl::OkStatus();
  }

  void FetchEvents(bool is_over, Fetched fetched) {
    auto answered = [this, is_over, fetched = std::move(fetched)](
                        absl::StatusOr<runtime::Queries::EventsAnswer> answer) mutable {
      if (!answer.ok()) return fetched(answer.status());
      Page page;
      page.is_caught_up = core::IsEndOfLog(answer->events, kPageEvents);
      page.is_end = page.is_caught_up && is_over;
      // The page may reach beyond last_seq: that was read before it.
      if (page.is_caught_up) after_seq_ = std::max(after_seq_, answer->last_seq);
      const std::vector<core::EventRow>& rows = answer->events;
      if (!rows.empty()) after_seq_ = std::max(after_seq_, rows.back().seq);
      for (const core::EventRow& row : rows)
        if (std::optional<v1::Event> event = ToProtoIfSeen(row); event.has_value())
          page.messages.push_back(*std::move(event));
      fetched(std::move(page));
    };
    // Asked anew each time: what is not published yet may be by then.
    backend_->queries->EventsAfter(ViewerOf(*backend_, identity_, kWatchEvents), submission_,
                                   after_seq_, kPageEvents, std::move(answered));
  }

  core::SubmissionId submission_;
  int64_t after_seq_;  // one fetch at a time touches it
};

// ---------------------------------------------------------------------------------- WatchRunEvents

class RunEventWatch final : public WatchStream<v1::RunEvent> {
 public:
  RunEventWatch(const Backend* backend, auth::Identity identity,
                const v1::WatchRunEventsRequest& request)
      : WatchStream(backend, std::move(identity), request.follow()),
        node_rank_(request.node_rank()),
        after_(request.after_seq()) {}

  void Begin(const std::string& name) {
    const absl::StatusOr<core::RunId> run = ParseRunName(name);
    if (!run.ok()) return Refuse(run.status());
    if (node_rank_ < -1 || after_ < 0) {
      return Refuse(absl::InvalidArgumentError(
          absl::StrCat("node_rank is ", node_rank_, " and after_seq ", after_,
                       ": give a rank from 0, or -1 for all, and 0 for the beginning")));
    }
    run_ = *run;
    backend_->queries->GetDisclosure(
        run_, [this](const absl::StatusOr<core::Disclosure>& disclosure) {
          const absl::StatusOr<core::Sight> sight =
              CheckVisible(*backend_, identity_, kWatchRunEvents, disclosure, NameOf(run_));
          if (!sight.ok()) return Refuse(sight.status());
          sight_ = *sight;
          FindSubmission();
        });
  }

 protected:
  void Fetch(Fetched fetched) override {
    backend_->queries->GetRun(
        run_, [this, fetched = std::move(fetched)](absl::StatusOr<core::Run> found) mutable {
          if (!found.ok()) return fetched(found.status());
          FetchEvents(core::IsTerminal(found->state), std::move(fetched));
        });
  }

 private:
  void FindSubmission() {
    backend_->queries->GetRun(run_, [this](absl::StatusOr<core::Run> found) {
      if (!found.ok()) return Refuse(found.status());
      Hook(found->submission);
      Start();
    });
  }

  void FetchEvents(bool is_over, Fetched fetched) {
    backend_->queries->RunEventsAfter(
        run_, node_rank_, after_, kPageEvents,
        [this, is_over,
         fetched = std::move(fetched)](absl::StatusOr<std::vector<core::RunEvent>> events) mutable {
          if (!events.ok()) return fetched(events.status());
          Page page;
          page.is_caught_up = core::IsEndOfLog(*events, kPageEvents);
          page.is_end = page.is_caught_up && is_over;
          const std::vector<core::RunEvent>& items = *events;
          if (!items.empty()) after_ = node_rank_ < 0 ? items.back().order : items.back().seq;
          for (const core::RunEvent& event : items)
            if (std::optional<v1::RunEvent> seen = ToProtoIfSeen(event, run_, sight_);
                seen.has_value())
              page.messages.push_back(*std::move(seen));
          fetched(std::move(page));
        });
  }

  const int32_t node_rank_;
  core::RunId run_;
  core::Sight sight_ = core::Sight::kNothing;  // set before the first fetch
  int64_t after_;                              // one fetch at a time touches it
};

// -------------------------------------------------------------------------------- DownloadArtifact

class Download final : public ArtifactStream {
 public:
  Download(const Backend* backend, auth::Identity identity, std::string sha256)
      : ArtifactStream(backend, std::move(identity)), sha256_(std::move(sha256)) {}

  void Begin() {
    const core::VisibleTo viewer = ViewerOf(backend(), identity(), kDownload);
    backend().queries->GetArtifact(
        viewer, sha256_, [this](absl::StatusOr<core::ArtifactInfo> found) {
          const std::string resource = absl::StrCat("artifacts/", sha256_);
          const bool is_hidden = found.ok() && IsForOperators(found->artifact.file_name) &&
                                 identity().role != auth::Role::kOperator;
          if (is_hidden || absl::IsNotFound(found.status())) return Refuse(NotVisible(resource));
          if (!found.ok()) return Refuse(found.status());
          Send(sha256_);
        });
  }

 private:
  const std::string sha256_;
};

}  // namespace

grpc::ServerWriteReactor<v1::Event>* NewEventWatch(const Backend* backend,
                                                   const auth::Identity& identity,
                                                   const v1::WatchEventsRequest& request) {
  auto* const watch = new EventWatch(backend, identity, request.follow(), request.after_seq());
  watch->Begin(request);
  return watch;
}

grpc::ServerWriteReactor<v1::RunEvent>* NewRunEventWatch(const Backend* backend,
                                                         const auth::Identity& identity,
                                                         const v1::WatchRunEventsRequest& request) {
  auto* const watch = new RunEventWatch(backend, identity, request);
  watch->Begin(request.run());
  return watch;
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* NewDownload(
    const Backend* backend, const auth::Identity& identity,
    const v1::DownloadArtifactRequest& request) {
  auto* const download = new Download(backend, identity, request.sha256());
  download->Begin();
  return download;
}

}  // namespace assay::api
