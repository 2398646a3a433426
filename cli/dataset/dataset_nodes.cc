#include "cli/dataset/dataset_nodes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/resources.pb.h"

#include "cli/command/context.h"
#include "common/client/cancellation.h"
#include "common/client/ids.h"
#include "common/client/message_json.h"
#include "common/client/resource_json.h"
#include "common/mutex.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int kCachePageSize = 500;
constexpr int kBarWidth = 24;
constexpr absl::Duration kLookInterval = absl::Seconds(1);

// What operators order of nodes about a dataset, each with `assay dataset NAME`.
struct Verb {
  v1::CacheOrder::Action action = v1::CacheOrder::ACTION_UNSPECIFIED;
  const char* name = nullptr;
  const char* doing = nullptr;  // the state of a node that is at it
  const char* said = nullptr;   // "cosmo32 SAID 2 nodes: w0, w1"
  const char* summary = nullptr;
  const char* description = nullptr;
};

constexpr Verb kVerbs[] = {
    {v1::CacheOrder::STAGE, "stage", "staging", "is staged to the cache of",
     "copy a dataset to the caches of nodes",
     "For operators. Each node copies the dataset from where it is registered to its own cache "
     "(node_cache of the agent's configuration), when no run is on it: a run that comes has the "
     "node at once, and the copy goes on when it has ended. What is there already is not copied "
     "again. Runs of rounds that do not time staging start from the cache, and are placed on "
     "nodes that have the dataset before others of the same type. What has failed and may pass is "
     "tried again for 20 hours; `assay dataset nodes` says when. With --wait it exits with 1 if a "
     "node has failed for good."},
    {v1::CacheOrder::EVICT, "evict", "evicting", "goes from the cache of",
     "remove a dataset from the caches of nodes",
     "For operators. The dataset itself stays where it is registered. What is pinned on a node "
     "stays there: assay dataset unpin."},
    {v1::CacheOrder::PIN, "pin", "pinning", "is pinned in the cache of",
     "keep a dataset in the caches of nodes, whatever needs the room",
     "For operators. What is pinned is evicted neither for another dataset nor by an order, until "
     "it is unpinned. A node that does not have the dataset, and is not told to stage it, has "
     "nothing to pin and says so."},
    {v1::CacheOrder::UNPIN, "unpin", "unpinning", "is not pinned any more in the cache of",
     "let a dataset be evicted from the caches of nodes again",
     "For operators. The dataset stays until it is evicted, or another needs the room."},
};

const Verb* FindVerb(v1::CacheOrder::Action action) {
  const auto* const it = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                      [action](const Verb& verb) { return verb.action == action; });
  return it == std::end(kVerbs) ? nullptr : it;
}

// What one node has of a dataset, and what it is told about it.
struct NodeOfDataset {
  std::string node;
  std::string node_state;
  std::string run;  // that the node executes; empty: none
  bool is_told = false;
  std::optional<v1::CachedDataset> cached;
  std::optional<v1::CacheOrder> order;      // about the dataset: what is to do, or has ended last
  std::optional<v1::CacheReport> progress;  // of that order, while it is carried out
  std::string look_problem;

  bool IsPending() const { return order.has_value() && order->state() == v1::CacheOrder::PENDING; }
  bool HasFailed() const { return order.has_value() && order->state() == v1::CacheOrder::FAILED; }
  bool IsTriedAgain() const { return IsPending() && order->failure_count() > 0; }
  bool IsComplete() const { return cached.has_value() && cached->files() >= cached->files_total(); }
};

absl::StatusOr<v1::Dataset> FindDataset(const client::Client& client, const std::string& name) {
  ASSIGN_OR_RETURN(const v1::ListDatasetsResponse all, client.Call(v1::ListDatasetsRequest()));
  for (const v1::Dataset& dataset : all.datasets())
    if (dataset.name() == name) return dataset;
  return absl::NotFoundError(absl::StrCat("there is no dataset '", client::ShortId(name),
                                          "'; 'assay dataset list' shows all"));
}

// That of `action`, where it is given; else the first that is pending; else the last that has
// failed; else the last.
std::optional<v1::CacheOrder> FindOrder(const v1::Worker& worker, const v1::Dataset& dataset,
                                        std::optional<v1::CacheOrder::Action> action) {
  std::optional<v1::CacheOrder> found;
  for (const v1::CacheOrder& order : worker.cache_orders()) {
    if (order.dataset() != client::ShortId(dataset.name()) || order.digest() != dataset.digest() ||
        order.action() != action.value_or(order.action()))
      continue;
    if (found.has_value() && found->state() == v1::CacheOrder::PENDING) break;
    const bool is_worse_known = found.has_value() && found->state() == v1::CacheOrder::FAILED &&
                                order.state() == v1::CacheOrder::DONE;
    if (!is_worse_known) found = order;
  }
  return found;
}

std::optional<NodeOfDataset> Describe(const v1::Worker& worker, const v1::Dataset& dataset,
                                      std::optional<v1::CacheOrder::Action> action) {
  NodeOfDataset node{.node = client::ShortId(worker.name()),
                     .node_state = client::StateText(worker.state()),
                     .run = client::ShortId(worker.run()),
                     .is_told = worker.has_cache(),
                     .look_problem = worker.cache().look_problem()};
  for (const v1::CachedDataset& cached : worker.cache().datasets())
    if (cached.digest() == dataset.digest()) node.cached = cached;
  node.order = FindOrder(worker, dataset, action);
  if (node.IsPending() && worker.cache().number() == node.order->number() && node.run.empty())
    node.progress = worker.cache();
  const bool has_cache = worker.capabilities().cache_bytes() > 0;
  if (!has_cache && !node.order.has_value()) return std::nullopt;
  return node;
}

// All nodes with a cache, by name; with their orders of `action`, or of any.
absl::StatusOr<std::vector<NodeOfDataset>> ReadNodes(
    const client::Client& client, const v1::Dataset& dataset,
    std::optional<v1::CacheOrder::Action> action = std::nullopt) {
  std::vector<NodeOfDataset> nodes;
  v1::ListWorkersRequest request;
  request.set_page_size(kCachePageSize);
  do {
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse page, client.Call(request));
    for (const v1::Worker& worker : page.workers())
      if (std::optional<NodeOfDataset> node = Describe(worker, dataset, action); node.has_value())
        nodes.push_back(*std::move(node));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return nodes;
}

std::string StateOf(const NodeOfDataset& node) {
  if (node.IsPending()) {
    if (!node.progress.has_value()) return "waiting";
    const Verb* const verb = FindVerb(node.order->action());
    return verb == nullptr ? "busy" : verb->doing;
  }
  if (node.HasFailed()) return "failed";
  if (!node.is_told || !node.look_problem.empty()) return "unknown";
  if (!node.cached.has_value()) return "absent";
  return node.IsComplete() ? "complete" : "partial";
}

// "failed 3 times, again in 40 s: it is held by a run"
std::string DescribeTries(const v1::CacheOrder& order) {
  std::string text = absl::StrCat("failed ", order.failure_count(),
                                  order.failure_count() == 1 ? " time" : " times");
  if (order.has_retry_time()) {
    const absl::Duration pause =
        absl::FromUnixSeconds(order.retry_time().seconds()) - absl::Now() + absl::Seconds(1);
    const int64_t pause_s = std::max<int64_t>(absl::ToInt64Seconds(pause), 0);
    absl::StrAppend(&text, ", again in ", pause_s < 120 ? pause_s : pause_s / 60,
                    pause_s < 120 ? " s" : " min");
  }
  return absl::StrCat(text, ": ", order.reason());
}

std::string ReasonOf(const NodeOfDataset& node) {
  if (node.HasFailed())
    return node.order->failure_count() > 1 ? DescribeTries(*node.order) : node.order->reason();
  if (node.IsTriedAgain()) return DescribeTries(*node.order);
  if (node.IsPending() && !node.run.empty())
    return absl::StrCat("goes on when ", node.run, " has ended");
  return node.look_problem;
}

Json ItemOf(const NodeOfDataset& node) {
  Json item = {{"id", node.node}, {"node_state", node.node_state}, {"state", StateOf(node)}};
  const bool is_staging = node.progress.has_value() && node.progress->bytes_total() > 0;
  if (is_staging) {
    item["files"] = node.progress->files();
    item["files_total"] = node.progress->files_total();
    item["bytes"] = node.progress->bytes();
    item["bytes_total"] = node.progress->bytes_total();
  } else if (node.cached.has_value()) {
    item["files"] = node.cached->files();
    item["files_total"] = node.cached->files_total();
    item["bytes"] = node.cached->bytes();
    item["bytes_total"] = node.cached->bytes_total();
  }
  if (node.cached.has_value()) {
    item["is_pinned"] = node.cached->is_pinned();
    item["is_in_use"] = node.cached->is_in_use();
  }
  if (const std::string reason = ReasonOf(node); !reason.empty()) item["reason"] = reason;
  if (node.order.has_value()) {
    const auto& states = *google::protobuf::GetEnumDescriptor<v1::CacheOrder::State>();
    const auto& actions = *google::protobuf::GetEnumDescriptor<v1::CacheOrder::Action>();
    item["order"] = {{"number", node.order->number()},
                     {"action", client::EnumText(actions, node.order->action())},
                     {"state", client::EnumText(states, node.order->state())},
                     {"created", client::TimeText(node.order->create_time())}};
    if (!node.order->path().empty()) item["order"]["path"] = node.order->path();
    if (node.order->failure_count() > 0) item["order"]["failures"] = node.order->failure_count();
    if (node.order->has_retry_time())
      item["order"]["retry"] = client::TimeText(node.order->retry_time());
    if (node.order->has_end_time())
      item["order"]["ended"] = client::TimeText(node.order->end_time());
  }
  return item;
}

absl::Status ShowNodes(Context* context, const std::vector<NodeOfDataset>& nodes) {
  ListView view{.schema = "assay.dataset_node/v1",
                .columns = {{"NODE", "id"},
                            {"STATE", "state", Format::kState},
                            {"BYTES", "bytes", Format::kBytes},
                            {"OF", "bytes_total", Format::kBytes, 1},
                            {"PINNED", "is_pinned", Format::kYesNo, 2},
                            {"REASON", "reason", Format::kText, 1}},
                .empty_text =
                    "no node has a cache; node_cache of an agent's configuration names "
                    "one (docs/operator.md)"};
  for (const NodeOfDataset& node : nodes)
    view.items.push_back(ItemOf(node));
  return context->printer().List(view);
}

// False once it is interrupted.
bool Pause(client::Cancellation* cancellation) {
  Mutex mutex;
  CondVar raised;
  bool is_raised = false;
  const client::ScopedCancelAction action(cancellation, [&] {
    MutexLock lock(&mutex);
    is_raised = true;
    raised.NotifyAll();
  });
  MutexLock lock(&mutex);
  if (!is_raised) raised.WaitFor(&mutex, absl::ToChronoNanoseconds(kLookInterval));
  return !is_raised;
}

void Draw(const Context& context, const std::vector<NodeOfDataset>& nodes, ProgressLine* line) {
  int64_t bytes = 0;
  int64_t bytes_total = 0;
  int64_t pending = 0;
  int64_t tried_again = 0;
  for (const NodeOfDataset& node : nodes) {
    pending += node.IsPending() ? 1 : 0;
    tried_again += node.IsTriedAgain() ? 1 : 0;
    if (node.progress.has_value()) {
      bytes += node.progress->bytes();
      bytes_total += node.progress->bytes_total();
    } else if (node.cached.has_value()) {
      bytes += node.cached->bytes();
      bytes_total += node.cached->bytes_total();
    }
  }
  const auto count = static_cast<int64_t>(nodes.size());
  line->Draw(absl::StrCat(ProgressBar(bytes, bytes_total, kBarWidth, context.style().is_utf8()),
                          " ", FormatBytes(static_cast<double>(bytes)), " of ",
                          FormatBytes(static_cast<double>(bytes_total)), ", ", count - pending, "/",
                          count, " nodes",
                          tried_again == 0 ? "" : absl::StrCat(", ", tried_again, " tried again")));
}

// Tells each failure that may pass, once.
void TellFailures(Context* context, const std::vector<NodeOfDataset>& nodes,
                  std::map<std::string, int32_t>* told, ProgressLine* line) {
  for (const NodeOfDataset& node : nodes) {
    if (!node.IsTriedAgain()) continue;
    int32_t& count = (*told)[node.node];
    if (std::exchange(count, node.order->failure_count()) >= node.order->failure_count()) continue;
    line->Clear();
    context->Warn(absl::StrCat(node.node, ": ", DescribeTries(*node.order)));
  }
}

// An order that was given.
struct Given {
  const Verb& verb;
  v1::Dataset dataset;
  std::set<std::string> nodes;
};

absl::StatusOr<std::vector<NodeOfDataset>> ReadNodes(const client::Client& client,
                                                     const Given& given) {
  ASSIGN_OR_RETURN(std::vector<NodeOfDataset> nodes,
                   ReadNodes(client, given.dataset, given.verb.action));
  std::erase_if(nodes,
                [&given](const NodeOfDataset& node) { return !given.nodes.contains(node.node); });
  return nodes;
}

// Until the order is pending on none of its nodes.
absl::StatusOr<ExitStatus> AwaitNodes(Context* context, const client::Client& client,
                                      const Given& given, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const std::string id = client::ShortId(given.dataset.name());
  std::map<std::string, int32_t> told;
  ProgressLine line(context);
  while (true) {
    ASSIGN_OR_RETURN(std::vector<NodeOfDataset> nodes, ReadNodes(client, given));
    const auto has = [&nodes](bool (NodeOfDataset::*property)() const) {
      return std::any_of(nodes.begin(), nodes.end(),
                         [property](const NodeOfDataset& node) { return (node.*property)(); });
    };
    const bool is_over = !has(&NodeOfDataset::IsPending);
    const bool is_late = absl::Now() >= deadline;
    if (is_over || is_late) {
      line.Clear();
      RETURN_IF_ERROR(ShowNodes(context, nodes));
      for (const NodeOfDataset& node : nodes)
        if (node.HasFailed()) context->Warn(absl::StrCat(node.node, ": ", ReasonOf(node)));
      if (!is_over) {
        context->Note(absl::StrCat("timed out; it goes on. See: assay dataset nodes ", id));
        return ExitStatus::kTimedOut;
      }
      return has(&NodeOfDataset::HasFailed) ? ExitStatus::kFailed : ExitStatus::kDone;
    }
    TellFailures(context, nodes, &told, &line);
    Draw(*context, nodes, &line);
    if (!Pause(context->env().interrupt)) {
      line.Clear();
      context->Note(absl::StrCat("detached; it goes on. See: assay dataset nodes ", id));
      return ExitStatus::kInterrupted;
    }
  }
}

absl::StatusOr<ExitStatus> Order(Context* context, const Arguments& arguments, const Verb& verb) {
  ASSIGN_OR_RETURN(const absl::Duration timeout,
                   arguments.Duration("timeout", absl::InfiniteDuration()));
  v1::OrderCachesRequest request;
  ASSIGN_OR_RETURN(*request.mutable_dataset(), client::DatasetName(arguments.Get("ID")));
  request.set_action(verb.action);
  if (verb.action == v1::CacheOrder::STAGE && arguments.Has("from-archives"))
    request.set_path(arguments.Get("from-archives"));
  for (const std::string& node : arguments.All("node")) {
    ASSIGN_OR_RETURN(*request.add_workers(), client::WorkerName(node));
  }
  const bool may_wait = arguments.Has("wait") || arguments.Has("timeout");
  if (may_wait) context->env().interrupt->Listen();
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  Given given{.verb = verb, .dataset = {}, .nodes = {}};
  ASSIGN_OR_RETURN(given.dataset, FindDataset(*client, request.dataset()));
  ASSIGN_OR_RETURN(const v1::OrderCachesResponse ordered, client->Call(request));
  for (const std::string& worker : ordered.workers())
    given.nodes.insert(client::ShortId(worker));
  if (may_wait) return AwaitNodes(context, *client, given, timeout);
  if (context->printer().IsStructured()) {
    ASSIGN_OR_RETURN(const std::vector<NodeOfDataset> nodes, ReadNodes(*client, given));
    RETURN_IF_ERROR(ShowNodes(context, nodes));
    return ExitStatus::kDone;
  }
  const std::string id = client::ShortId(given.dataset.name());
  context->out() << id << " " << verb.said << " " << given.nodes.size()
                 << (given.nodes.size() == 1 ? " node: " : " nodes: ")
                 << absl::StrJoin(given.nodes, ", ") << "\n";
  context->Note(absl::StrCat("follow: assay dataset nodes ", id));
  return ExitStatus::kDone;
}

template <size_t kVerb>
absl::StatusOr<ExitStatus> RunOrder(Context* context, const Arguments& arguments) {
  return Order(context, arguments, kVerbs[kVerb]);
}

absl::StatusOr<ExitStatus> RunNodes(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::string name, client::DatasetName(arguments.Get("ID")));
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Dataset dataset, FindDataset(*client, name));
  ASSIGN_OR_RETURN(const std::vector<NodeOfDataset> nodes, ReadNodes(*client, dataset));
  RETURN_IF_ERROR(ShowNodes(context, nodes));
  return ExitStatus::kDone;
}

const Positional& Id() {
  static const Positional* const id =
      new Positional{.name = "ID", .help = "as cosmo32", .completes = Completes::kDataset};
  return *id;
}

std::vector<Option> OrderOptions() {
  return {{.name = "node",
           .kind = Option::Kind::kText,
           .value = "NODE",
           .help = "only this node; may be repeated. Without it: all that have a cache",
           .completes = Completes::kNode},
          {.name = "wait", .help = "until all of them are done, with a progress bar"},
          {.name = "timeout",
           .kind = Option::Kind::kDuration,
           .value = "DURATION",
           .help = "wait no longer than this; exits with 7"}};
}

template <size_t kVerb>
Command OrderCommand() {
  const Verb& verb = kVerbs[kVerb];
  const std::string path = absl::StrCat("dataset ", verb.name);
  Command command{
      .path = path,
      .summary = verb.summary,
      .description = verb.description,
      .positionals = {Id()},
      .options = OrderOptions(),
      .examples = {{absl::StrCat("assay ", path, " cosmo32"),
                    verb.action == v1::CacheOrder::STAGE ? "to all nodes with a cache" : ""},
                   {absl::StrCat("assay ", path, " cosmo32 --node w0 --node w1 --wait"), ""}},
      .run = RunOrder<kVerb>};
  if (verb.action != v1::CacheOrder::STAGE) return command;
  command.options.push_back({.name = "from-archives",
                             .kind = Option::Kind::kText,
                             .value = "PATH",
                             .help = "copy from this folder of the nodes, where the dataset's "
                                     "manifest and its archives lie (assay dataset pack); each "
                                     "node checks it"});
  command.examples.push_back(
      {"assay dataset stage cosmo32 --from-archives /data/cosmo32-packed", ""});
  return command;
}

}  // namespace

std::vector<Command> DatasetOrderCommands() {
  return {OrderCommand<0>(), OrderCommand<1>(), OrderCommand<2>(), OrderCommand<3>()};
}

Command DatasetNodesCommand() {
  return {.path = "dataset nodes",
          .summary = "show which nodes have a dataset in their caches",
          .description =
              "Nodes look at their caches once a minute while no run is on them. A dataset is "
              "known by its digest, whatever it is called there.",
          .positionals = {Id()},
          .examples = {{"assay dataset nodes cosmo32", ""},
                       {"assay dataset nodes cosmo32 --json=id,state,bytes", ""}},
          .run = RunNodes};
}

}  // namespace assay::cli
