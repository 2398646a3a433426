// The calls of AdminService about nodes and their leases.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "common/status.h"
#include "server/api/admin_service.h"
#include "server/api/convert.h"
#include "server/api/convert_allocation.h"
#include "server/api/convert_worker.h"
#include "server/api/names.h"

namespace assay::api {
namespace {

constexpr absl::string_view kListWorkers = "assay.v1.AdminService/ListWorkers";
constexpr absl::string_view kGetRun = "assay.v1.SubmissionService/GetRun";
constexpr absl::string_view kGetWorker = "assay.v1.AdminService/GetWorker";
constexpr absl::string_view kDrainWorker = "assay.v1.AdminService/DrainWorker";
constexpr absl::string_view kResumeWorker = "assay.v1.AdminService/ResumeWorker";
constexpr absl::string_view kLabelWorker = "assay.v1.AdminService/LabelWorker";
constexpr absl::string_view kRevokeWorker = "assay.v1.AdminService/RevokeWorker";
constexpr absl::string_view kOrderCaches = "assay.v1.AdminService/OrderCaches";
constexpr absl::string_view kListAllocations = "assay.v1.AdminService/ListAllocations";
constexpr absl::string_view kGetAllocation = "assay.v1.AdminService/GetAllocation";
constexpr absl::string_view kRequestAllocation = "assay.v1.AdminService/RequestAllocation";
constexpr absl::string_view kReleaseAllocation = "assay.v1.AdminService/ReleaseAllocation";

// The workers of `reply` after `request.page_token`, which is the last name of the page before.
v1::ListWorkersResponse ToResponse(const core::WorkersReply& reply,
                                   const v1::ListWorkersRequest& request) {
  const int32_t size = request.page_size() == 0 ? core::kPageSizeDefault : request.page_size();
  v1::ListWorkersResponse response;
  for (const core::WorkersReply::Entry& entry : reply.workers) {
    if (entry.worker.name <= request.page_token()) continue;
    if (response.workers_size() == size) {
      const std::string& last = response.workers(size - 1).name();
      response.set_next_page_token(last.substr(last.find('/') + 1));
      break;
    }
    *response.add_workers() = ToProto(entry.worker, entry.presence);
  }
  return response;
}

absl::StatusOr<core::CacheAction> ReadAction(v1::CacheOrder::Action action) {
  std::vector<absl::string_view> names;
  for (const core::CacheAction known : core::kCacheActions) {
    names.push_back(ToString(known));
    if (v1::CacheOrder::Action_Name(action) == names.back()) return known;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("action: expected one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<core::OrderCaches> ReadOrder(const v1::OrderCachesRequest& request) {
  core::OrderCaches command;
  ASSIGN_OR_RETURN(command.dataset, ParseDatasetName(request.dataset()));
  ASSIGN_OR_RETURN(command.action, ReadAction(request.action()));
  command.path = request.path();
  for (const std::string& name : request.workers()) {
    ASSIGN_OR_RETURN(std::string worker, ParseWorkerName(name));
    command.workers.push_back(std::move(worker));
  }
  return command;
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::OrderCaches(grpc::CallbackServerContext* context,
                                                    const v1::OrderCachesRequest* request,
                                                    v1::OrderCachesResponse* response) {
  return AskCore(
      *backend_, context, *request, response, kOrderCaches,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        ASSIGN_OR_RETURN(core::OrderCaches command, ReadOrder(*request));
        return command;
      },
      [](core::Reply reply, const auth::Identity&) {
        v1::OrderCachesResponse ordered;
        for (const std::string& worker : Expect<core::CachesReply>(std::move(reply)).workers)
          ordered.add_workers(WorkerName(worker));
        return absl::StatusOr<v1::OrderCachesResponse>(std::move(ordered));
      });
}

grpc::ServerUnaryReactor* AdminService::ListWorkers(grpc::CallbackServerContext* context,
                                                    const v1::ListWorkersRequest* request,
                                                    v1::ListWorkersResponse* response) {
  // `request` lives until the call is finished.
  return AskCore(
      *backend_, context, *request, response, kListWorkers,
      [this, request](const auth::Identity& who) -> absl::StatusOr<core::CommandBody> {
        return core::ListWorkers{.is_brief = request->is_brief(),
                                 .viewer = ViewerOf(*backend_, who, kGetRun)};
      },
      [request](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::ListWorkersResponse>(
            ToResponse(Expect<core::WorkersReply>(std::move(reply)), *request));
      });
}

// One that has left memory is told from the store.
grpc::ServerUnaryReactor* AdminService::GetWorker(grpc::CallbackServerContext* context,
                                                  const v1::GetWorkerRequest* request,
                                                  v1::Worker* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kGetWorker, *request);
  const absl::StatusOr<std::string> name =
      Then(identity, [&](const auth::Identity&) { return ParseWorkerName(request->name()); });
  if (!name.ok()) {
    call.Finish(name.status());
    return call.reactor;
  }
  const core::VisibleTo viewer = ViewerOf(*backend_, *identity, kGetRun);
  const auto tell_past = [call, viewer, name = *name](absl::StatusOr<core::Worker> worker) {
    if (absl::IsNotFound(worker.status()))
      return call.Finish(absl::NotFoundError(absl::StrCat(
          WorkerName(name), " does not exist: its agent has never called; assay node list")));
    if (!worker.ok()) return call.Finish(worker.status());
    if (!viewer.sees_all) {  // whose runs it had nobody looks up any more
      worker->run = {};
      worker->generation = 0;
      worker->allocation = {};
      worker->preflight.reset();
    }
    call.Finish(absl::StatusOr<v1::Worker>(ToProto(*worker, {})));
  };
  backend_->core->Post(
      CommandOf(*identity, core::ListWorkers{.viewer = viewer}),
      [call, name = *name, tell_past, this](absl::StatusOr<core::Reply> reply) {
        if (!reply.ok()) return call.Finish(reply.status());
        for (const core::WorkersReply::Entry& entry :
             Expect<core::WorkersReply>(*std::move(reply)).workers) {
          if (entry.worker.name == name)
            return call.Finish(absl::StatusOr<v1::Worker>(ToProto(entry.worker, entry.presence)));
        }
        backend_->queries->GetWorker(name, tell_past);
      });
  return call.reactor;
}

grpc::ServerUnaryReactor* AdminService::DrainWorker(grpc::CallbackServerContext* context,
                                                    const v1::DrainWorkerRequest* request,
                                                    v1::Worker* response) {
  return AskCore(
      *backend_, context, *request, response, kDrainWorker,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        ASSIGN_OR_RETURN(const std::string worker, ParseWorkerName(request->name()));
        return core::DrainWorker{.worker = worker, .reason = request->reason()};
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::Worker>(ToProto(Expect<core::Worker>(std::move(reply)), {}));
      });
}

grpc::ServerUnaryReactor* AdminService::ResumeWorker(grpc::CallbackServerContext* context,
                                                     const v1::ResumeWorkerRequest* request,
                                                     v1::Worker* response) {
  return AskCore(
      *backend_, context, *request, response, kResumeWorker,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        ASSIGN_OR_RETURN(const std::string worker, ParseWorkerName(request->name()));
        return core::ResumeWorker{.worker = worker};
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::Worker>(ToProto(Expect<core::Worker>(std::move(reply)), {}));
      });
}

grpc::ServerUnaryReactor* AdminService::LabelWorker(grpc::CallbackServerContext* context,
                                                    const v1::LabelWorkerRequest* request,
                                                    v1::Worker* response) {
  return AskCore(
      *backend_, context, *request, response, kLabelWorker,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        core::LabelWorker command;
        ASSIGN_OR_RETURN(command.worker, ParseWorkerName(request->name()));
        command.labels.insert(request->labels().begin(), request->labels().end());
        command.removed.assign(request->removed().begin(), request->removed().end());
        return command;
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::Worker>(ToProto(Expect<core::Worker>(std::move(reply)), {}));
      });
}

// What the store knows goes along, should the worker have left memory.
grpc::ServerUnaryReactor* AdminService::RevokeWorker(grpc::CallbackServerContext* context,
                                                     const v1::RevokeWorkerRequest* request,
                                                     v1::Worker* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kRevokeWorker, *request);
  const absl::StatusOr<std::string> name =
      Then(identity, [&](const auth::Identity&) { return ParseWorkerName(request->name()); });
  if (!name.ok()) {
    call.Finish(name.status());
    return call.reactor;
  }
  core::RevokeWorker command{.worker = *name, .reason = request->reason()};
  backend_->queries->GetWorker(
      *name, [call, identity = *identity, command, this](absl::StatusOr<core::Worker> past) {
        core::RevokeWorker body = command;
        if (past.ok()) body.past = past->description;
        backend_->core->Post(
            CommandOf(identity, std::move(body)), [call](absl::StatusOr<core::Reply> reply) {
              if (!reply.ok()) return call.Finish(reply.status());
              call.Finish(
                  absl::StatusOr<v1::Worker>(ToProto(Expect<core::Worker>(*std::move(reply)), {})));
            });
      });
  return call.reactor;
}

grpc::ServerUnaryReactor* AdminService::ListAllocations(grpc::CallbackServerContext* context,
                                                        const v1::ListAllocationsRequest* request,
                                                        v1::ListAllocationsResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kListAllocations, *request);
  if (!identity.ok()) {
    call.Finish(identity.status());
    return call.reactor;
  }
  backend_->queries->ListAllocations(
      ViewerOf(*backend_, *identity, kGetRun),
      {.size = request->page_size(), .token = request->page_token()},
      [call](absl::StatusOr<core::Page<core::Allocation>> page) {
        if (!page.ok()) return call.Finish(page.status());
        call.Finish(absl::StatusOr<v1::ListAllocationsResponse>(ToProto(*page)));
      });
  return call.reactor;
}

grpc::ServerUnaryReactor* AdminService::GetAllocation(grpc::CallbackServerContext* context,
                                                      const v1::GetAllocationRequest* request,
                                                      v1::Allocation* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kGetAllocation, *request);
  const absl::StatusOr<core::AllocationId> id =
      Then(identity, [&](const auth::Identity&) { return ParseAllocationName(request->name()); });
  if (!id.ok()) {
    call.Finish(id.status());
    return call.reactor;
  }
  backend_->queries->GetAllocation(
      ViewerOf(*backend_, *identity, kGetRun), *id,
      [call](absl::StatusOr<core::Allocation> allocation) {
        if (!allocation.ok()) return call.Finish(allocation.status());
        call.Finish(absl::StatusOr<v1::Allocation>(ToProto(*allocation)));
      });
  return call.reactor;
}

grpc::ServerUnaryReactor* AdminService::RequestAllocation(
    grpc::CallbackServerContext* context, const v1::RequestAllocationRequest* request,
    v1::Allocation* response) {
  return AskCore(
      *backend_, context, *request, response, kRequestAllocation,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        ASSIGN_OR_RETURN(core::RequestAllocation command, FromProto(*request));
        return command;
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::Allocation>(ToProto(Expect<core::Allocation>(std::move(reply))));
      });
}

grpc::ServerUnaryReactor* AdminService::ReleaseAllocation(
    grpc::CallbackServerContext* context, const v1::ReleaseAllocationRequest* request,
    v1::Allocation* response) {
  return AskCore(
      *backend_, context, *request, response, kReleaseAllocation,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        ASSIGN_OR_RETURN(const core::AllocationId id, ParseAllocationName(request->name()));
        return core::ReleaseAllocation{.allocation = id, .reason = request->reason()};
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::Allocation>(ToProto(Expect<core::Allocation>(std::move(reply))));
      });
}

}  // namespace assay::api
