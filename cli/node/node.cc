#include "cli/node/node.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "cli/command/context.h"
#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int kNodePageSize = 500;

absl::StatusOr<ExitStatus> RunNodeList(Context* context, const Arguments&) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ListView view{.schema = "assay.node/v1",
                .columns = {{"ID", "id"},
                            {"STATE", "state", Format::kState},
                            {"RUN", "run"},
                            {"ALLOCATION", "allocation", Format::kText, 7},
                            {"HOST", "host", Format::kText, 1},
                            {"CORES", "cores", Format::kNumber, 2},
                            {"MEMORY", "memory_bytes", Format::kBytes, 3},
                            {"ACCELERATOR", "accelerator_model", Format::kText, 4},
                            {"BACKENDS", "backends", Format::kText, 5},
                            {"LAST SEEN", "last_seen", Format::kTime, 6},
                            {"VERSION", "version", Format::kText, 9},
                            {"PRE-FLIGHT", "preflight.state", Format::kState, 8}},
                .empty_text = "no nodes; an operator enrols one with 'assay admin enrol NAME'"};
  v1::ListWorkersRequest request;
  request.set_page_size(kNodePageSize);
  do {
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse page, client->Call(request));
    for (const v1::Worker& worker : page.workers())
      view.items.push_back(client::NodeJson(worker));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> ShowNode(Context* context, const v1::Worker& worker) {
  RETURN_IF_ERROR(
      context->printer().Show({.schema = "assay.node/v1",
                               .value = client::NodeJson(worker),
                               .fields = {{"node", "id"},
                                          {"state", "state", Format::kState},
                                          {"  reason", "state_reason"},
                                          {"run", "run"},
                                          {"allocation", "allocation"},
                                          {"host", "host"},
                                          {"cpu", "cpu_model"},
                                          {"cores", "cores"},
                                          {"memory", "memory_bytes", Format::kBytes},
                                          {"accelerators", "accelerators"},
                                          {"accelerator", "accelerator_model"},
                                          {"backends", "backends"},
                                          {"labels", "labels"},
                                          {"labels of operators", "operator_labels"},
                                          {"last seen", "last_seen", Format::kTime},
                                          {"clock offset us", "clock_offset_us"},
                                          {"  uncertainty us", "clock_offset_uncertainty_us"},
                                          {"version", "version"},
                                          {"revoked", "certificates_revoked", Format::kTime},
                                          {"  valid from generation", "certificate_generation"},
                                          {"pre-flight", "preflight.state", Format::kState},
                                          {"  for", "preflight.entry"},
                                          {"  ended", "preflight.ended", Format::kTime},
                                          {"  reason", "preflight.reason"}},
                               .sections = {{"Pre-flight",
                                             "preflight.checks",
                                             {{"CHECK", "check"},
                                              {"POLICY", "policy"},
                                              {"VALUE", "value", Format::kNumber},
                                              {"UNIT", "unit"},
                                              {"MEDIAN", "median", Format::kNumber},
                                              {"PROBLEM", "problem", Format::kText, 1},
                                              {"DETAIL", "detail", Format::kText, 2}}},
                                            {"Node cache",
                                             "cache.datasets",
                                             {{"DATASET", "name"},
                                              {"DIGEST", "digest", Format::kDigest},
                                              {"BYTES", "bytes", Format::kBytes},
                                              {"OF", "bytes_total", Format::kBytes},
                                              {"PINNED", "is_pinned", Format::kYesNo},
                                              {"IN USE", "is_in_use", Format::kYesNo}}},
                                            {"Orders for the node cache",
                                             "cache_orders",
                                             {{"DATASET", "dataset"},
                                              {"ACTION", "action"},
                                              {"STATE", "state", Format::kState},
                                              {"REASON", "reason", Format::kText, 1}}}}}));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunNodeShow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::GetWorkerRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::WorkerName(arguments.Get("NODE")));
  ASSIGN_OR_RETURN(const v1::Worker worker, client->Call(request));
  return ShowNode(context, worker);
}

// "a.b" of each value that is no object, and a list's values as one text.
void AddFacts(const std::string& prefix, const Json& value, Json* items) {
  for (const auto& [name, member] : value.items()) {
    const std::string fact = absl::StrCat(prefix, name);
    if (member.is_object()) {
      AddFacts(fact + ".", member, items);
    } else {
      items->push_back({{"fact", fact}, {"value", client::RawText(member)}});
    }
  }
}

// What its agent tells of it and has measured, without what the coordinator decides.
absl::StatusOr<ExitStatus> RunNodeFacts(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::GetWorkerRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::WorkerName(arguments.Get("NODE")));
  ASSIGN_OR_RETURN(const v1::Worker worker, client->Call(request));
  v1::Worker told;
  *told.mutable_capabilities() = worker.capabilities();
  *told.mutable_labels() = worker.labels();
  told.set_version(worker.version());
  told.set_system_description_json(worker.system_description_json());
  Json facts = client::NodeJson(told);
  for (const char* not_told : {"id", "state"})
    facts.erase(not_told);
  ListView view{.schema = "assay.fact/v1",
                .columns = {{"FACT", "fact"}, {"VALUE", "value"}},
                .empty_text = absl::StrCat(client::ShortId(worker.name()), " tells nothing")};
  AddFacts("", facts, &view.items);
  for (const v1::NodeCheck& check : worker.preflight().checks())
    if (check.is_measured())
      view.items.push_back({{"fact", absl::StrCat("measured.", check.check())},
                            {"value", absl::StrFormat("%.4g %s", check.value(), check.unit())}});
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

// KEY=VALUE gives a label, KEY- takes one away.
absl::StatusOr<v1::LabelWorkerRequest> ReadLabels(const std::vector<std::string>& words,
                                                  const v1::Worker& worker) {
  v1::LabelWorkerRequest request;
  request.set_name(worker.name());
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos && equals > 0) {
      (*request.mutable_labels())[word.substr(0, equals)] = word.substr(equals + 1);
    } else if (equals == std::string::npos && word.size() > 1 && word.back() == '-') {
      const std::string name = word.substr(0, word.size() - 1);
      if (!worker.operator_labels().contains(name))
        return absl::NotFoundError(
            absl::StrCat(client::ShortId(worker.name()), " has no label ", name,
                         worker.labels().contains(name)
                             ? " of an operator: its agent tells it, by its configuration"
                             : "; 'assay node show' has those that it has"));
      request.add_removed(name);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is no label: KEY=VALUE gives one, KEY- takes it away"));
    }
  }
  return request;
}

absl::StatusOr<ExitStatus> RunNodeLabel(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::GetWorkerRequest get;
  ASSIGN_OR_RETURN(*get.mutable_name(), client::WorkerName(arguments.Get("NODE")));
  ASSIGN_OR_RETURN(const v1::Worker before, client->Call(get));
  ASSIGN_OR_RETURN(const v1::LabelWorkerRequest request,
                   ReadLabels(arguments.All("LABEL"), before));
  ASSIGN_OR_RETURN(const v1::Worker worker, client->CallRetrying(request));
  if (context->printer().IsStructured()) return ShowNode(context, worker);
  const std::string id = client::ShortId(worker.name());
  std::map<std::string, std::string> labels(worker.operator_labels().begin(),
                                            worker.operator_labels().end());
  labels.insert(worker.labels().begin(), worker.labels().end());
  context->out() << id << " has "
                 << (labels.empty()
                         ? "no labels"
                         : absl::StrCat("the labels ",
                                        absl::StrJoin(labels, ", ", absl::PairFormatter("="))))
                 << "\n";
  context->Note("runs that are queued are placed by them; those that run go on");
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunNodeDrain(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::DrainWorkerRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::WorkerName(arguments.Get("NODE")));
  request.set_reason(arguments.Get("reason"));
  ASSIGN_OR_RETURN(const v1::Worker worker, client->Call(request));
  if (context->printer().IsStructured()) return ShowNode(context, worker);
  const std::string id = client::ShortId(worker.name());
  context->out() << id << " is " << client::StateText(worker.state()) << ": "
                 << (worker.run().empty()
                         ? "it gets no run"
                         : absl::StrCat("it finishes ", client::ShortId(worker.run()),
                                        " and gets no other"))
                 << "\n";
  context->Note(absl::StrCat("undo: assay node resume ", id));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunNodeResume(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::ResumeWorkerRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::WorkerName(arguments.Get("NODE")));
  ASSIGN_OR_RETURN(const v1::Worker worker, client->Call(request));
  if (context->printer().IsStructured()) return ShowNode(context, worker);
  context->out() << client::ShortId(worker.name()) << " is " << client::StateText(worker.state())
                 << ": it takes runs again\n";
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunNodeRevoke(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::RevokeWorkerRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::WorkerName(arguments.Get("NODE")));
  request.set_reason(arguments.Get("reason"));
  ASSIGN_OR_RETURN(const v1::Worker worker, client->Call(request));
  if (context->printer().IsStructured()) return ShowNode(context, worker);
  const std::string id = client::ShortId(worker.name());
  context->out() << "the certificates of " << id
                 << " are revoked: whoever holds one is refused from now on\n";
  context->Note(absl::StrCat("let the node in again: assay admin enrol ", id,
                             ", put the token where its agent reads it, restart the agent"));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> NodeCommands() {
  const Positional node = {
      .name = "NODE", .help = "name of the worker, as w0", .completes = Completes::kNode};
  return {{.path = "node list",
           .summary = "list nodes with state and present run",
           .examples = {{"assay node list", ""}, {"assay node list --json=id,state,run", ""}},
           .run = RunNodeList},
          {.path = "node show",
           .summary = "show what a node is and does",
           .positionals = {node},
           .examples = {{"assay node show w0", ""}},
           .run = RunNodeShow},
          {.path = "node facts",
           .summary = "what a node's agent tells of its machine, and what it has measured",
           .description = "Hardware, labels, version and what the package's system description "
                          "takes from it, one fact a line: as the agent has told it last; and "
                          "'measured.', what its last pre-flight has found.",
           .positionals = {node},
           .examples = {{"assay node facts w0", ""},
                        {"diff <(assay node facts w0) <(assay node facts w1)",
                         "what two nodes have different"}},
           .run = RunNodeFacts},
          {.path = "node label",
           .summary = "give a node labels, or take them away",
           .description =
               "Entries ask for labels ([labels] of the submission file), and runs are placed on "
               "nodes that have them. A label given here counts in the place of the agent's own "
               "of the same name, and stays when the agent restarts. For operators.",
           .positionals = {node,
                           {.name = "LABEL",
                            .help = "KEY=VALUE to give one, KEY- to take it away",
                            .is_repeated = true}},
           .examples = {{"assay node label w0 rack=7 switch=ib-leaf-1", ""},
                        {"assay node label w0 rack-", "the agent's own counts again"}},
           .run = RunNodeLabel},
          {.path = "node drain",
           .summary = "let a node finish its run and give it no other",
           .positionals = {node},
           .options = {{.name = "reason",
                        .kind = Option::Kind::kText,
                        .value = "TEXT",
                        .help = "why, for the audit log"}},
           .examples = {{"assay node drain w0 --reason 'new kernel'", ""}},
           .run = RunNodeDrain},
          {.path = "node resume",
           .summary = "give runs to a drained node again",
           .positionals = {node},
           .examples = {{"assay node resume w0", ""}},
           .run = RunNodeResume},
          {.path = "node revoke",
           .summary = "refuse a node's certificates, when its key may have leaked",
           .description =
               "From the next call on, whoever holds a certificate of the node is refused, a call "
               "under way ends, and enrolment tokens for it that are not used yet are worthless. A "
               "run that the node executes fails as if the node were lost, and is repeated if its "
               "entry has replacements left. The node may come back: give it a token made "
               "afterwards (assay admin enrol) and restart its agent, which makes a new key.",
           .positionals = {node},
           .options = {{.name = "reason",
                        .kind = Option::Kind::kText,
                        .value = "TEXT",
                        .help = "why, for the audit log"}},
           .examples = {{"assay node revoke w0 --reason 'laptop with a backup stolen'", ""}},
           .run = RunNodeRevoke}};
}

}  // namespace assay::cli
