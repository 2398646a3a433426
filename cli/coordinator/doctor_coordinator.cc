#include "cli/coordinator/doctor_coordinator.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/command/context.h"
#include "cli/coordinator/doctor_network.h"
#include "common/client/ids.h"
#include "common/client/json.h"
#include "common/client/resource_json.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int kFleetPageSize = 1000;
constexpr size_t kNamesMax = 3;

using Workers = std::vector<v1::Worker>;

// Those that have not signed off.
absl::StatusOr<Workers> ReadWorkers(const client::Client& client) {
  Workers workers;
  v1::ListWorkersRequest request;
  request.set_page_size(kFleetPageSize);
  do {
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse page, client.Call(request));
    for (const v1::Worker& worker : page.workers())
      if (worker.state() != v1::Worker::GONE) workers.push_back(worker);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return workers;
}

// "w0, w3, w7 and 2 more"
std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamesMax); ++i)
    absl::StrAppend(&text, i == 0 ? "" : ", ", names[i]);
  if (names.size() > kNamesMax) absl::StrAppend(&text, " and ", names.size() - kNamesMax, " more");
  return text;
}

Check CheckSilence(const Workers& workers) {
  std::vector<std::string> silent;
  for (const v1::Worker& worker : workers)
    if (worker.state() == v1::Worker::SUSPECT || worker.state() == v1::Worker::LOST)
      silent.push_back(client::ShortId(worker.name()));
  if (silent.empty()) return {"nodes", "ok", absl::StrCat(workers.size(), ", none is silent")};
  return {"nodes", "warn",
          absl::StrCat(silent.size(), " of ", workers.size(), " silent: ", Names(silent)),
          "'assay node show NAME' says since when; on the node: systemctl status assay-worker"};
}

Check CheckClocks(const Workers& workers) {
  double worst_ms = 0;
  std::string worst;
  for (const v1::Worker& worker : workers) {
    const double offset_ms = std::abs(static_cast<double>(worker.clock_offset_us())) / 1000.0;
    if (offset_ms < worst_ms) continue;
    worst_ms = offset_ms;
    worst = client::ShortId(worker.name());
  }
  constexpr double kSkewMaxMs = 50;  // above it a run gets a finding
  return {"node clocks", worst_ms > kSkewMaxMs ? "warn" : "ok",
          absl::StrFormat("largest offset %.2f ms (%s)", worst_ms, worst),
          worst_ms > kSkewMaxMs ? "run chrony or ntpd on every node" : ""};
}

// Agents that do not say their version are not judged by it.
Check CheckVersions(const Workers& workers, const std::string& version) {
  std::vector<std::string> others;
  for (const v1::Worker& worker : workers)
    if (!worker.version().empty() && worker.version() != version)
      others.push_back(absl::StrCat(client::ShortId(worker.name()), " has ", worker.version()));
  if (others.empty()) return {"node versions", "ok", absl::StrCat("all ", version)};
  return {"node versions", "warn",
          absl::StrCat("the coordinator has ", version, ", ", Names(others)),
          "bring assay-worker to the coordinator's version, node after node (assay node drain)"};
}

Check CheckPresence(const v1::Worker& worker, const std::string& id) {
  const std::string reason =
      worker.state_reason().empty() ? "" : absl::StrCat(": ", worker.state_reason());
  switch (worker.state()) {
    case v1::Worker::ALIVE:
      return {"presence", "ok",
              absl::StrCat("it answers",
                           worker.run().empty()
                               ? ", and is free"
                               : absl::StrCat(", and executes ", client::ShortId(worker.run())))};
    case v1::Worker::DRAINING:
      return {"presence", "warn", absl::StrCat("it is drained", reason),
              absl::StrCat("when it is fit again: assay node resume ", id)};
    default:
      return {"presence", "fail", absl::StrCat("it is ", client::StateText(worker.state()), reason),
              "on the node: systemctl status assay-worker, journalctl -u assay-worker"};
  }
}

Check CheckLastPreflight(const v1::Worker& worker) {
  if (!worker.has_preflight())
    return {"pre-flight", "ok", "it was not checked before a run; the configuration asks for that"};
  const Json preflight = client::NodeJson(worker)["preflight"];
  const std::string state = preflight.value("state", "");
  const std::string reason = preflight.value("reason", "");
  return {
      "pre-flight", state == "failed" ? "warn" : "ok",
      absl::StrCat(state, reason.empty() ? "" : ": ", reason),
      state == "failed" ? "its figures: assay node show; it is checked again before a run" : ""};
}

void CheckCacheOrders(const v1::Worker& worker, std::vector<Check>* checks) {
  for (const v1::CacheOrder& order : worker.cache_orders()) {
    if (order.state() != v1::CacheOrder::FAILED) continue;
    checks->push_back({"node cache", "warn", absl::StrCat(order.dataset(), ": ", order.reason()),
                       absl::StrCat("order it again: assay dataset stage ", order.dataset())});
  }
}

}  // namespace

void CheckNode(const v1::Worker& worker, const v1::ServerInfo& info, std::vector<Check>* checks) {
  checks->push_back(CheckPresence(worker, client::ShortId(worker.name())));
  checks->push_back(CheckClocks({worker}));
  checks->push_back(CheckVersions({worker}, info.version()));
  checks->push_back(CheckLastPreflight(worker));
  CheckCacheOrders(worker, checks);
}

Check CheckDisk(const std::string& name, const std::string& path, double free_bytes_min,
                const std::string& remedy) {
  std::string existing = path;
  while (!existing.empty() && existing != "/" && !FileExists(existing))
    existing = existing.substr(0, std::max<size_t>(existing.rfind('/'), 1));
  struct statvfs info = {};
  if (statvfs(existing.c_str(), &info) != 0)
    return {name, "warn", absl::StrCat("cannot look at ", existing)};
  const double free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
  const bool is_short = free < free_bytes_min;
  return {name, is_short ? "warn" : "ok", absl::StrCat(FormatBytes(free), " free at ", existing),
          is_short ? remedy : ""};
}

void CheckCoordinator(const Environment& env, const client::Client& client,
                      const v1::ServerInfo& info, std::vector<Check>* checks) {
  constexpr double kFreeMin = 2e9;  // well above the reserve below which it accepts nothing
  if (absl::StartsWith(info.data_directory(), "/") &&
      absl::StartsWith(client.endpoint().target, "unix:")) {
    checks->push_back(CheckDisk("data disk", info.data_directory(), kFreeMin,
                                "make room: with 256 MiB free the coordinator accepts no entries"));
    if (!info.tcp_address().empty()) checks->push_back(CheckPort(info.tcp_address()));
  }
  if (info.has_certificate_end_time())
    checks->push_back(CheckCertificateEnd(
        "server certificate", "the coordinator's certificate",
        absl::FromUnixSeconds(info.certificate_end_time().seconds()), env,
        "an operator renews it and restarts assayd: docs/operator.md, Certificates' life"));
  if (!info.web_url().empty()) checks->push_back(CheckSite(info.web_url(), env));
  const absl::StatusOr<Workers> workers = ReadWorkers(client);
  if (!workers.ok()) {
    checks->push_back({"nodes", "warn", std::string(workers.status().message())});
    return;
  }
  if (workers->empty()) {
    checks->push_back({"nodes", "warn", "no node has joined",
                       "an operator enrols nodes with 'assay admin enrol NAME'"});
    return;
  }
  checks->push_back(CheckSilence(*workers));
  checks->push_back(CheckClocks(*workers));
  checks->push_back(CheckVersions(*workers, info.version()));
  checks->push_back(CheckNodeCertificates(*workers, env));
}

}  // namespace assay::cli
