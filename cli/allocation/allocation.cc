#include "cli/allocation/allocation.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"

#include "cli/allocation/join.h"
#include "cli/command/context.h"
#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kAllocationPageSize = 500;

absl::StatusOr<ExitStatus> RunAllocationList(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ListView view{
      .schema = "assay.allocation/v1",
      .columns = {{"ID", "id"},
                  {"STATE", "state", Format::kState},
                  {"LAUNCHER", "launcher"},
                  {"NODES", "nodes", Format::kText, 1},
                  {"ENTRY", "entry", Format::kText, 4},
                  {"DEADLINE", "deadline", Format::kTime, 3},
                  {"CREATED", "created", Format::kTime, 5},
                  {"REASON", "state_reason", Format::kText, 2},
                  {"LAST ERROR", "last_error", Format::kText, 6}},
      .empty_text = arguments.Has("all")
                        ? "no allocations; the first begins when a node calls or is asked for"
                        : "no allocations but for those that have ended; --all lists them too"};
  v1::ListAllocationsRequest request;
  request.set_page_size(kAllocationPageSize);
  do {
    ASSIGN_OR_RETURN(const v1::ListAllocationsResponse page, client->Call(request));
    for (const v1::Allocation& allocation : page.allocations()) {
      if (allocation.state() != v1::Allocation::ENDED || arguments.Has("all"))
        view.items.push_back(client::AllocationJson(allocation));
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> ShowAllocation(Context* context, const v1::Allocation& allocation) {
  RETURN_IF_ERROR(context->printer().Show({.schema = "assay.allocation/v1",
                                           .value = client::AllocationJson(allocation),
                                           .fields = {{"allocation", "id"},
                                                      {"state", "state", Format::kState},
                                                      {"reason", "state_reason"},
                                                      {"launcher", "launcher"},
                                                      {"nodes asked for", "node_count"},
                                                      {"nodes", "nodes"},
                                                      {"job", "job"},
                                                      {"hosts", "hosts"},
                                                      {"labels", "labels"},
                                                      {"entry", "entry"},
                                                      {"requested by", "requested_by"},
                                                      {"created", "created", Format::kTime},
                                                      {"granted", "granted", Format::kTime},
                                                      {"deadline", "deadline", Format::kTime},
                                                      {"ended", "ended", Format::kTime},
                                                      {"failures", "failures"},
                                                      {"  last error", "last_error"},
                                                      {"  tried again", "retry", Format::kTime}}}));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunAllocationShow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::GetAllocationRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::AllocationName(arguments.Get("ALLOCATION")));
  ASSIGN_OR_RETURN(const v1::Allocation allocation, client->Call(request));
  return ShowAllocation(context, allocation);
}

absl::StatusOr<ExitStatus> RunAllocationRequest(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::RequestAllocationRequest request;
  request.set_request_id(MakeUuid());
  request.set_reason(arguments.Get("reason"));
  v1::Allocation* const wanted = request.mutable_allocation();
  ASSIGN_OR_RETURN(const int64_t nodes, arguments.Integer("nodes", 0));
  if (nodes < 0 || nodes > std::numeric_limits<int32_t>::max())
    return absl::InvalidArgumentError(absl::StrCat("--nodes is ", nodes, ": give 1 or more"));
  wanted->set_node_count(static_cast<int32_t>(nodes));
  if (arguments.Has("entry")) {
    ASSIGN_OR_RETURN(*wanted->mutable_submission(),
                     client::EntryName(*client, arguments.Get("entry")));
  }
  ASSIGN_OR_RETURN(const absl::Duration lifetime,
                   arguments.Duration("lifetime", absl::ZeroDuration()));
  if (lifetime > absl::ZeroDuration())
    *wanted->mutable_lifetime() = TimeUtil::SecondsToDuration(absl::ToInt64Seconds(lifetime));
  ASSIGN_OR_RETURN(const v1::Allocation allocation, client->CallRetrying(request));
  if (context->printer().IsStructured()) return ShowAllocation(context, allocation);
  const std::string id = client::ShortId(allocation.name());
  context->out() << id << " is " << client::StateText(allocation.state()) << ": "
                 << allocation.node_count() << " nodes of launcher " << allocation.launcher()
                 << "\n";
  context->Note(absl::StrCat("look at it: assay allocation show ", id));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunAllocationRelease(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::ReleaseAllocationRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::AllocationName(arguments.Get("ALLOCATION")));
  request.set_reason(arguments.Get("reason"));
  ASSIGN_OR_RETURN(const v1::Allocation allocation, client->Call(request));
  if (context->printer().IsStructured()) return ShowAllocation(context, allocation);
  context->out() << client::ShortId(allocation.name()) << " is "
                 << client::StateText(allocation.state())
                 << ": it gets no more runs, and its nodes go when those on them have ended\n";
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> AllocationCommands() {
  const Positional allocation = {
      .name = "ALLOCATION", .help = "as a-1", .completes = Completes::kAllocation};
  const Option reason = {.name = "reason",
                         .kind = Option::Kind::kText,
                         .value = "TEXT",
                         .help = "why, for the audit log"};
  return {
      {.path = "allocation list",
       .summary = "list leases of nodes that have not ended",
       .options = {{.name = "all", .help = "also those that have ended"}},
       .examples = {{"assay allocation list", ""},
                    {"assay allocation list --all --json=id,state,nodes", ""}},
       .run = RunAllocationList},
      {.path = "allocation show",
       .summary = "show a lease of nodes: state, nodes, deadline, failures",
       .positionals = {allocation},
       .examples = {{"assay allocation show a-1", ""}},
       .run = RunAllocationShow},
      {.path = "allocation request",
       .summary = "ask the launcher for nodes",
       .description =
           "Nodes that come by themselves (launcher attach) need no request. The scheduler asks "
           "by itself when a run waits for nodes that the launcher could provide; what fails is "
           "asked for again, with pauses that double from 5 seconds to 5 minutes.",
       .options = {{.name = "nodes",
                    .kind = Option::Kind::kInteger,
                    .value = "N",
                    .help = "as many as possible if not given"},
                   {.name = "entry",
                    .kind = Option::Kind::kText,
                    .value = "ENTRY",
                    .help = "only its runs may use them, and they go when it has ended",
                    .completes = Completes::kEntry},
                   {.name = "lifetime",
                    .kind = Option::Kind::kDuration,
                    .value = "DURATION",
                    .help = "from the grant; then runs on them are stopped"},
                   reason},
       .examples = {{"assay allocation request --nodes 2 --lifetime 4h", ""}},
       .run = RunAllocationRequest},
      JoinCommand(),
      {.path = "allocation release",
       .summary = "give nodes back when their runs have ended",
       .description =
           "No further run starts on the nodes. When those that run have ended, the launcher "
           "stops the agents. The scheduler asks for nodes again when a run needs them.",
       .positionals = {allocation},
       .options = {reason},
       .examples = {{"assay allocation release a-1 --reason 'maintenance at noon'", ""}},
       .run = RunAllocationRelease}};
}

}  // namespace assay::cli
