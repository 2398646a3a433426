#include "server/api/submission_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/rpc/finding_proto.h"
#include "common/secret.h"
#include "common/status.h"
#include "server/api/borrowing.h"
#include "server/api/convert.h"
#include "server/api/creation.h"
#include "server/api/import.h"
#include "server/api/names.h"
#include "server/api/published_view.h"
#include "server/api/pull_stream.h"
#include "server/api/source_streams.h"
#include "server/api/submission_streams.h"
#include "server/auth/permissions.h"
#include "server/core/decide.h"
#include "server/core/pruning.h"

namespace assay::api {
namespace {

constexpr absl::string_view kGet = "assay.v1.SubmissionService/GetSubmission";
constexpr absl::string_view kList = "assay.v1.SubmissionService/ListSubmissions";
constexpr absl::string_view kCancel = "assay.v1.SubmissionService/CancelSubmission";
constexpr absl::string_view kWithdraw = "assay.v1.SubmissionService/WithdrawSubmission";
constexpr absl::string_view kNote = "assay.v1.SubmissionService/NoteSubmission";
constexpr absl::string_view kPrune = "assay.v1.SubmissionService/PruneInstances";
constexpr absl::string_view kExplain = "assay.v1.SubmissionService/ExplainSubmission";
constexpr absl::string_view kGetRun = "assay.v1.SubmissionService/GetRun";
constexpr absl::string_view kListRuns = "assay.v1.SubmissionService/ListRuns";
constexpr absl::string_view kImport = "assay.v1.SubmissionService/ImportSubmission";

// Calls `next` with how much `identity` sees of the submission or run, if it sees it; otherwise
// finishes `call`.
template <typename Id, typename Response, typename Next>
void IfVisible(const Backend* backend, const auth::Identity& identity, absl::string_view method,
               Id id, UnaryCall<Response> call, Next next) {
  backend->queries->GetDisclosure(
      id, [=, next = std::move(next)](const absl::StatusOr<core::Disclosure>& disclosure) mutable {
        const absl::StatusOr<core::Sight> sight =
            CheckVisible(*backend, identity, method, disclosure, NameOf(id));
        if (!sight.ok()) return call.Finish(sight.status());
        next(*sight);
      });
}

v1::ListSubmissionsResponse ToResponse(const core::VisibleTo& viewer,
                                       const core::Page<core::Submission>& page) {
  v1::ListSubmissionsResponse response;
  for (const core::Submission& submission : page.items) {
    v1::Submission* const message = response.add_submissions();
    *message = ToProto(submission, core::SightOf(viewer, core::DisclosureOf(submission)));
    message->clear_system_description_json();  // a page of them would be too large
  }
  response.set_next_page_token(page.next_page_token);
  return response;
}

v1::ListRunsResponse ToResponse(const auth::Identity& identity,
                                const core::Page<core::SeenRun>& page) {
  v1::ListRunsResponse response;
  for (const core::SeenRun& run : page.items)
    *response.add_runs() = ToProto(run.run, run.sight, identity.role);
  response.set_next_page_token(page.next_page_token);
  return response;
}

struct ListRequest {
  core::SubmissionFilter filter;
  core::PageRequest page;
};

absl::StatusOr<ListRequest> ReadList(core::VisibleTo viewer,
                                     const v1::ListSubmissionsRequest& request) {
  ListRequest list;
  list.page = {.size = request.page_size(), .token = request.page_token()};
  list.filter.viewer = std::move(viewer);
  list.filter.organization = request.organization();
  list.filter.system = request.system();
  list.filter.benchmark = request.benchmark();
  list.filter.division = request.division();
  list.filter.round = request.round();
  if (request.state().empty()) return list;
  list.filter.state = core::ParseSubmissionState(request.state());
  if (list.filter.state.has_value()) return list;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown state \"", request.state(),
                   "\": choose OPEN, RUNNING, CHECKING, VALID, INVALID or CANCELLED"));
}

struct ListRunsQuery {
  core::RunFilter filter;
  core::PageRequest page;
};

absl::StatusOr<ListRunsQuery> ReadListRuns(core::VisibleTo viewer,
                                           const v1::ListRunsRequest& request) {
  ListRunsQuery list;
  list.page = {.size = request.page_size(), .token = request.page_token()};
  list.filter.viewer = std::move(viewer);
  if (!request.submission().empty()) {
    ASSIGN_OR_RETURN(list.filter.submission, ParseSubmissionName(request.submission()));
  }
  if (request.state().empty()) return list;
  list.filter.state = core::ParseRunState(request.state());
  if (list.filter.state.has_value()) return list;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown state \"", request.state(),
      "\": choose QUEUED, ASSIGNED, RUNNING, UPLOADING, SUCCEEDED, FAILED or CANCELLED"));
}

// Finishes `call` with the submission of `reply`.
void FinishWithSubmission(const Backend* backend, absl::StatusOr<core::Reply> reply,
                          UnaryCall<v1::Submission> call) {
  if (!reply.ok()) return call.Finish(reply.status());
  WithSubmission(*backend, Expect<core::SubmissionReply>(*std::move(reply)),
                 [call](absl::StatusOr<core::Submission> found) {
                   if (!found.ok()) return call.Finish(found.status());
                   call.Finish(ToProto(*found));
                 });
}

v1::PlanSubmissionResponse ToResponse(const runtime::Plan& plan,
                                      const core::PlacementReply& placement) {
  v1::PlanSubmissionResponse response;
  for (const auto* findings : {&plan.findings, &placement.findings})
    for (const core::Finding& finding : *findings)
      *response.add_findings() = FindingToProto(finding);
  *response.mutable_spec() = ToProto(plan.spec);
  response.set_worker_count_matching(placement.worker_count_matching);
  response.set_worker_count_free(placement.worker_count_free);
  response.set_run_count_ahead(placement.run_count_ahead);
  response.set_rules_digest(plan.rules.digest);
  response.set_is_mlperf_result(plan.rules.is_mlperf_result);
  response.set_round_label(plan.rules.label);
  response.set_quality_target(plan.rules.quality_target);
  if (placement.lease.has_value()) {
    response.set_launcher(placement.lease->launcher);
    response.mutable_lease()->set_seconds(placement.lease->lifetime_us / 1'000'000);
  }
  return response;
}

void FinishWithPlan(const runtime::Plan& plan, absl::StatusOr<core::Reply> reply,
                    UnaryCall<v1::PlanSubmissionResponse> call) {
  if (!reply.ok()) return call.Finish(reply.status());
  call.Finish(ToResponse(plan, Expect<core::PlacementReply>(*std::move(reply))));
}

}  // namespace

grpc::ServerUnaryReactor* SubmissionService::CreateSubmission(
    grpc::CallbackServerContext* context, const v1::CreateSubmissionRequest* request,
    v1::Submission* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kCreate, *request);
  absl::StatusOr<runtime::Plan> plan = Then(
      identity, [&](const auth::Identity& who) { return ReadCreate(*backend_, who, *request); });
  if (!plan.ok()) {
    call.Finish(plan.status());
    return call.reactor;
  }
  // `request` lives until the call is finished.
  auto create = [this, call, request, identity = *identity](absl::StatusOr<runtime::Plan> checked) {
    if (!checked.ok()) return call.Finish(checked.status());
    backend_->core->Post(ToCommand(identity, request->request_id(), *std::move(checked)),
                         [this, call](absl::StatusOr<core::Reply> reply) {
                           FinishWithSubmission(backend_, std::move(reply), call);
                         });
  };
  WithKnownSource(backend_, *std::move(plan),
                  [this, identity = *identity, create](absl::StatusOr<runtime::Plan> sourced) {
                    if (!sourced.ok()) return create(sourced.status());
                    WithJudgement(backend_, identity, kCreate, *std::move(sourced), create);
                  });
  return call.reactor;
}

grpc::ServerReadReactor<v1::CreateSubmissionWithSourceRequest>*
SubmissionService::CreateSubmissionWithSource(grpc::CallbackServerContext* context,
                                              v1::Submission* response) {
  return new SourcedCreation(backend_, Admit(*backend_, *context, kCreateWithSource), response);
}

grpc::ServerUnaryReactor* SubmissionService::PlanSubmission(
    grpc::CallbackServerContext* context, const v1::PlanSubmissionRequest* request,
    v1::PlanSubmissionResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kPlan, *request);
  absl::StatusOr<runtime::Plan> plan = Then(identity, [&](const auth::Identity& who) {
    return PlanFor(*backend_, who, kPlan, request->spec());
  });
  if (!plan.ok()) {
    call.Finish(plan.status());
    return call.reactor;
  }
  WithJudgement(
      backend_, *identity, kPlan, *std::move(plan),
      [this, call, identity = *identity](absl::StatusOr<runtime::Plan> checked) {
        if (!checked.ok()) return call.Finish(checked.status());
        core::Command command = CommandOf(
            identity, core::PlanPlacement{.spec = checked->spec,
                                          .viewer = ViewerOf(*backend_, identity, kPlan)});
        backend_->core->Post(std::move(command),
                             [call, plan = *std::move(checked)](absl::StatusOr<core::Reply> reply) {
                               FinishWithPlan(plan, std::move(reply), call);
                             });
      });
  return call.reactor;
}

grpc::ServerUnaryReactor* SubmissionService::GetSubmission(grpc::CallbackServerContext* context,
                                                           const v1::GetSubmissionRequest* request,
                                                           v1::Submission* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kGet, *request);
  absl::StatusOr<core::SubmissionId> id =
      Then(identity, [&](const auth::Identity&) { return ParseSubmissionName(request->name()); });
  if (!id.ok()) {
    call.Finish(id.status());
    return call.reactor;
  }
  IfVisible(backend_, *identity, kGet, *id, call, [this, call, id = *id](core::Sight sight) {
    backend_->queries->GetSubmission(id, [call, sight](absl::StatusOr<core::Submission> found) {
      if (!found.ok()) return call.Finish(found.status());
      call.Finish(ToProto(*found, sight));
    });
  });
  return call.reactor;
}

grpc::ServerUnaryReactor* SubmissionService::ListSubmissions(
    grpc::CallbackServerContext* context, const v1::ListSubmissionsRequest* request,
    v1::ListSubmissionsResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kList, *request);
  absl::StatusOr<ListRequest> list = Then(identity, [&](const auth::Identity& who) {
    return ReadList(ViewerOf(*backend_, who, kList), *request);
  });
  if (!list.ok()) {
    call.Finish(list.status());
    return call.reactor;
  }
  const core::VisibleTo viewer = list->filter.viewer;
  backend_->queries->ListSubmissions(
      std::move(list->filter), std::move(list->page),
      [call, viewer](absl::StatusOr<core::Page<core::Submission>> page) {
        if (!page.ok()) return call.Finish(page.status());
        call.Finish(ToResponse(viewer, *page));
      });
  return call.reactor;
}

namespace {

// A command about one submission, answered with what it has become. `command` is made of its id.
template <typename Request, typename MakeCommand>
grpc::ServerUnaryReactor* ChangeSubmission(const Backend* backend, absl::string_view method,
                                           grpc::CallbackServerContext* context,
                                           const Request& request, v1::Submission* response,
                                           MakeCommand make_command) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend, *context, method, request);
  absl::StatusOr<core::SubmissionId> id =
      Then(identity, [&](const auth::Identity&) { return ParseSubmissionName(request.name()); });
  if (!id.ok()) {
    call.Finish(id.status());
    return call.reactor;
  }
  core::Command command = CommandOf(*identity, make_command(*id));
  // Whose it is never changes, so it may be looked up before the core is asked.
  IfVisible(backend, *identity, method, *id, call,
            [backend, call, command = std::move(command)](core::Sight) mutable {
              backend->core->Post(std::move(command),
                                  [backend, call](absl::StatusOr<core::Reply> reply) {
                                    FinishWithSubmission(backend, std::move(reply), call);
                                  });
            });
  return call.reactor;
}

}  // namespace

grpc::ServerUnaryReactor* SubmissionService::CancelSubmission(
    grpc::CallbackServerContext* context, const v1::CancelSubmissionRequest* request,
    v1::Submission* response) {
  return ChangeSubmission(
      backend_, kCancel, context, *request, response, [&](core::SubmissionId id) {
        return core::CancelSubmission{.submission = id, .reason = request->reason()};
      });
}

grpc::ServerUnaryReactor* SubmissionService::WithdrawSubmission(
    grpc::CallbackServerContext* context, const v1::WithdrawSubmissionRequest* request,
    v1::Submission* response) {
  return ChangeSubmission(
      backend_, kWithdraw, context, *request, response, [&](core::SubmissionId id) {
        return core::WithdrawSubmission{.submission = id, .reason = request->reason()};
      });
}

grpc::ServerUnaryReactor* SubmissionService::NoteSubmission(
    grpc::CallbackServerContext* context, const v1::NoteSubmissionRequest* request,
    v1::Submission* response) {
  return ChangeSubmission(backend_, kNote, context, *request, response, [&](core::SubmissionId id) {
    return core::NoteSubmission{
        .request_id = request->request_id(), .submission = id, .text = request->text()};
  });
}

namespace {

// The verdict on what remains. Of a run that does not count anyway nothing is won.
absl::StatusOr<core::PruneInstances> ScorePruned(const Backend& backend,
                                                 runtime::Queries::RunSet set,
                                                 std::vector<core::RunId> pruned) {
  RETURN_IF_ERROR(core::CheckPruning(set.submission, pruned));
  for (const core::Run& run : set.runs) {
    if (std::find(pruned.begin(), pruned.end(), run.id) == pruned.end()) continue;
    if (run.state != core::RunState::kSucceeded || !run.facts.is_compliant.value_or(false))
      return absl::InvalidArgumentError(
          absl::StrCat("runs: ", run.id.ToString(), " does not count, so it cannot be left out"));
  }
  std::erase_if(set.runs,
                [](const core::Run& run) { return run.state != core::RunState::kSucceeded; });
  set.submission.pruned_runs = pruned;
  ASSIGN_OR_RETURN(runtime::Verdict verdict, backend.rules->Score(set.submission, set.runs));
  if (!verdict.throughput.has_value())
    return absl::FailedPreconditionError(
        absl::StrCat("without these runs there is no score: ", verdict.reason));
  return core::PruneInstances{.submission = set.submission.id,
                              .runs = std::move(pruned),
                              .throughput = *verdict.throughput,
                              .convergence = std::move(verdict.convergence),
                              .reason = std::move(verdict.reason)};
}

struct PruneQuery {
  core::SubmissionId submission;
  std::vector<core::RunId> runs;
};

absl::StatusOr<PruneQuery> ReadPrune(const v1::PruneInstancesRequest& request) {
  PruneQuery query;
  ASSIGN_OR_RETURN(query.submission, ParseSubmissionName(request.name()));
  for (const std::string& name : request.runs()) {
    ASSIGN_OR_RETURN(const core::RunId run, ParseRunName(name));
    query.runs.push_back(run);
  }
  return query;
}

}  // namespace

grpc::ServerUnaryReactor* SubmissionService::PruneInstances(
    grpc::CallbackServerContext* context, const v1::PruneInstancesRequest* request,
    v1::Submission* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kPrune, *request);
  absl::StatusOr<PruneQuery> query =
      Then(identity, [&](const auth::Identity&) { return ReadPrune(*request); });
  if (!query.ok()) {
    call.Finish(query.status());
    return call.reactor;
  }
  auto prune = [this, call, identity = *identity,
                runs = query->runs](absl::StatusOr<runtime::Queries::RunSet> set) {
    if (!set.ok()) return call.Finish(set.status());
    // The same choice again finds itself made.
    absl::StatusOr<core::PruneInstances> command =
        set->submission.pruned_runs == runs && !runs.empty()
            ? core::PruneInstances{.submission = set->submission.id, .runs = runs}
            : ScorePruned(*backend_, *std::move(set), runs);
    if (!command.ok()) return call.Finish(command.status());
    backend_->core->Post(CommandOf(identity, *std::move(command)),
                         [this, call](absl::StatusOr<core::Reply> reply) {
                           FinishWithSubmission(backend_, std::move(reply), call);
                         });
  };
  IfVisible(backend_, *identity, kPrune, query->submission, call,
            [this, id = query->submission, prune = std::move(prune)](core::Sight) mutable {
              backend_->queries->GetRunSet(id, std::move(prune));
            });
  return call.reactor;
}

grpc::ServerUnaryReactor* SubmissionService::ExplainSubmission(
    grpc::CallbackServerContext* context, const v1::ExplainSubmissionRequest* request,
    v1::ExplainSubmissionResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kExplain, *request);
  absl::StatusOr<core::SubmissionId> id =
      Then(identity, [&](const auth::Identity&) { return ParseSubmissionName(request->name()); });
  if (!id.ok()) {
    call.Finish(id.status());
    return call.reactor;
  }
  core::Command command = CommandOf(
      *identity, core::ExplainSubmission{.submission = *id,
                                         .viewer = ViewerOf(*backend_, *identity, kExplain)});
  IfVisible(backend_, *identity, kExplain, *id, call,
            [this, call, command = std::move(command)](core::Sight) mutable {
              backend_->core->Post(std::move(command), [call](absl::StatusOr<core::Reply> reply) {
                if (!reply.ok()) return call.Finish(reply.status());
                call.Finish(ToProto(Expect<core::Explanation>(*std::move(reply))));
              });
            });
  return call.reactor;
}

grpc::ServerUnaryReactor* SubmissionService::GetRun(grpc::CallbackServerContext* context,
                                                    const v1::GetRunRequest* request,
                                                    v1::Run* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kGetRun, *request);
  absl::StatusOr<core::RunId> id =
      Then(identity, [&](const auth::Identity&) { return ParseRunName(request->name()); });
  if (!id.ok()) {
    call.Finish(id.status());
    return call.reactor;
  }
  IfVisible(backend_, *identity, kGetRun, *id, call,
            [this, call, id = *id, who = *identity](core::Sight sight) {
              backend_->queries->GetRun(id, [call, who, sight](absl::StatusOr<core::Run> run) {
                if (!run.ok()) return call.Finish(run.status());
                call.Finish(ToProto(*run, sight, who.role));
              });
            });
  return call.reactor;
}

grpc::ServerUnaryReactor* SubmissionService::ListRuns(grpc::CallbackServerContext* context,
                                                      const v1::ListRunsRequest* request,
                                                      v1::ListRunsResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kListRuns, *request);
  absl::StatusOr<ListRunsQuery> list = Then(identity, [&](const auth::Identity& who) {
    return ReadListRuns(ViewerOf(*backend_, who, kListRuns), *request);
  });
  if (!list.ok()) {
    call.Finish(list.status());
    return call.reactor;
  }
  const core::SubmissionId submission = list->filter.submission;
  auto query = [this, call, list = *std::move(list), who = *identity] {
    backend_->queries->ListRuns(list.filter, list.page,
                                [call, who](absl::StatusOr<core::Page<core::SeenRun>> page) {
                                  if (!page.ok()) return call.Finish(page.status());
                                  call.Finish(ToResponse(who, *page));
                                });
  };
  if (submission.is_none()) {
    query();
  } else {
    // A submission that does not exist is an error, not an empty list.
    IfVisible(backend_, *identity, kListRuns, submission, call, [query](core::Sight) { query(); });
  }
  return call.reactor;
}

grpc::ServerWriteReactor<v1::Event>* SubmissionService::WatchEvents(
    grpc::CallbackServerContext* context, const v1::WatchEventsRequest* request) {
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kWatchEvents, *request);
  if (!identity.ok()) return new RefusedStream<v1::Event>(identity.status());
  return NewEventWatch(backend_, *identity, *request);
}

grpc::ServerWriteReactor<v1::RunEvent>* SubmissionService::WatchRunEvents(
    grpc::CallbackServerContext* context, const v1::WatchRunEventsRequest* request) {
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kWatchRunEvents, *request);
  if (!identity.ok()) return new RefusedStream<v1::RunEvent>(identity.status());
  return NewRunEventWatch(backend_, *identity, *request);
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* SubmissionService::DownloadArtifact(
    grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) {
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kDownload, *request);
  if (!identity.ok()) return new RefusedStream<v1::ArtifactChunk>(identity.status());
  return NewDownload(backend_, *identity, *request);
}

grpc::ServerReadReactor<v1::ImportSubmissionRequest>* SubmissionService::ImportSubmission(
    grpc::CallbackServerContext* context, v1::Submission* response) {
  return new Import(backend_, Admit(*backend_, *context, kImport), response);
}

}  // namespace assay::api
