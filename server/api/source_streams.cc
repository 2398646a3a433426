#include "server/api/source_streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/api/artifact_stream.h"
#include "server/api/borrowing.h"
#include "server/api/convert.h"
#include "server/api/creation.h"
#include "server/api/names.h"

namespace assay::api {
namespace {

constexpr int64_t kSourceBytesMax = int64_t{64} << 20;

}  // namespace

SourcedCreation::SourcedCreation(const Backend* backend, absl::StatusOr<auth::Identity> admission,
                                 v1::Submission* response)
    : PieceStream(backend->silences),
      backend_(backend),
      admission_(std::move(admission)),
      response_(response) {
  admission_.ok() ? Next() : End(admission_.status());
}

void SourcedCreation::Take(v1::CreateSubmissionWithSourceRequest* message) {
  using Part = v1::CreateSubmissionWithSourceRequest;
  if (plan_.has_value() == (message->part_case() == Part::kCreate))
    return End(absl::InvalidArgumentError(plan_.has_value()
                                              ? "a second submission: send one at a time"
                                              : "the first message is no submission"));
  switch (message->part_case()) {
    case Part::kCreate:
      return Begin(message->create());
    case Part::kSource:
      return backend_->uploads->Append(
          *ticket_, std::move(*message->mutable_source()),
          [this](const absl::Status& status) { status.ok() ? Next() : End(status); });
    case Part::PART_NOT_SET:
      is_whole_ = true;
      return Next();
  }
}

void SourcedCreation::Begin(const v1::CreateSubmissionRequest& request) {
  request_id_ = request.request_id();
  absl::StatusOr<runtime::Plan> plan = ReadCreate(*backend_, *admission_, request);
  if (!plan.ok()) return End(plan.status());
  plan_ = *std::move(plan);
  const core::SourceArchive* const source = core::SourceOf(plan_->spec.workload);
  if (source == nullptr || source->size_bytes < 1 || source->size_bytes > kSourceBytesMax)
    return End(absl::InvalidArgumentError(absl::StrCat(
        "spec.command.source: a source of 1 to ", kSourceBytesMax, " bytes has to be announced")));
  backend_->uploads->Begin(core::AsArtifact(*source),
                           [this](absl::StatusOr<runtime::Uploads::Ticket> ticket) {
                             if (!ticket.ok()) return End(ticket.status());
                             ticket_ = *ticket;
                             Next();
                           });
}

void SourcedCreation::Complete() {
  if (!ticket_.has_value())
    return End(absl::InvalidArgumentError("no message came: send the submission first"));
  // The end of a call looks the same whether its client has finished or was killed.
  if (!is_whole_)
    return End(absl::AbortedError("the source stopped half-way: end it with an empty message"));
  backend_->uploads->Finish(*ticket_, [this](const absl::StatusOr<core::ArtifactRef>& filed) {
    filed.ok() ? Create() : End(filed.status());
  });
}

void SourcedCreation::Create() {
  WithJudgement(backend_, *admission_, kCreateWithSource, *std::move(plan_),
                [this](absl::StatusOr<runtime::Plan> checked) {
                  if (!checked.ok()) return End(checked.status());
                  backend_->core->Post(ToCommand(*admission_, request_id_, *std::move(checked)),
                                       [this](absl::StatusOr<core::Reply> reply) {
                                         if (!reply.ok()) return End(reply.status());
                                         Finish(Expect<core::SubmissionReply>(*std::move(reply)));
                                       });
                });
}

void SourcedCreation::Finish(core::SubmissionReply reply) {
  const bool is_repeated = reply.is_repeated;
  auto answer = [this, reply = std::move(reply)]() mutable {
    WithSubmission(*backend_, std::move(reply), [this](absl::StatusOr<core::Submission> made) {
      if (made.ok()) *response_ = ToProto(*made);
      End(made.status());
    });
  };
  // What was made before has the source that came with it.
  if (is_repeated) return Drop(std::move(answer));
  backend_->uploads->Keep(*std::exchange(ticket_, std::nullopt));
  answer();
}

void SourcedCreation::Drop(absl::AnyInvocable<void()> done) {
  if (!ticket_.has_value()) return done();
  backend_->uploads->Drop(*std::exchange(ticket_, std::nullopt), std::move(done));
}

namespace {

// Whether the worker may have the source of the run: it is of the gang that executes it.
absl::Status CheckExecutes(const core::Run& run, const std::string& worker, int64_t generation) {
  const bool is_of_gang =
      std::any_of(run.nodes.begin(), run.nodes.end(), [&worker](const core::RunNode& node) {
        return node.worker == worker && !core::IsSettled(node);
      });
  if (is_of_gang && run.generation == generation && !core::IsTerminal(run.state))
    return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("worker ", worker, " does not execute run ",
                                                  run.id.ToString(), " in generation ",
                                                  generation));
}

class SourceDownload final : public ArtifactStream {
 public:
  SourceDownload(const Backend* backend, auth::Identity identity, int64_t generation)
      : ArtifactStream(backend, std::move(identity)), generation_(generation) {}

  void Begin(const std::string& name) {
    const absl::StatusOr<core::RunId> run = ParseRunName(name);
    if (!run.ok()) return Refuse(run.status());
    backend().queries->GetRun(*run, [this](const absl::StatusOr<core::Run>& found) {
      const absl::Status allowed = Then(found, [this](const core::Run& it) {
        return CheckExecutes(it, identity().principal, generation_);
      });
      if (!allowed.ok()) return Refuse(allowed);
      FindSource(*found);
    });
  }

 private:
  void FindSource(const core::Run& run) {
    backend().queries->GetSubmission(
        run.submission, [this](const absl::StatusOr<core::Submission>& found) {
          if (!found.ok()) return Refuse(found.status());
          const core::SourceArchive* const source = core::SourceOf(found->spec.workload);
          if (source == nullptr)
            return Refuse(absl::NotFoundError(
                absl::StrCat("the runs of ", found->id.ToString(), " have no source")));
          Send(source->sha256);
        });
  }

  const int64_t generation_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ArtifactChunk>* NewSourceDownload(
    const Backend* backend, const auth::Identity& identity,
    const v1::DownloadSourceRequest& request) {
  auto* const download = new SourceDownload(backend, identity, request.generation());
  download->Begin(request.run());
  return download;
}

}  // namespace assay::api
