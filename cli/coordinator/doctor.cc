#include "cli/coordinator/doctor.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/command/context.h"
#include "cli/command/share.h"
#include "cli/coordinator/doctor_backends.h"
#include "cli/coordinator/doctor_coordinator.h"
#include "cli/coordinator/doctor_network.h"
#include "common/client/ids.h"
#include "common/file.h"
#include "common/pki.h"
#include "common/status.h"

namespace assay::cli {
namespace {

Check CheckPrograms(const Environment& env) {
  std::string missing;
  for (const char* name : {"assayd", "assay-worker", "assay-train"})
    if (!SiblingProgram(env, name).ok())
      absl::StrAppend(&missing, missing.empty() ? "" : ", ", name);
  if (missing.empty()) return {"programs", "ok", absl::StrCat("all in ", env.program_directory)};
  return {"programs", "warn", absl::StrCat("not in ", env.program_directory, ": ", missing),
          "install them beside assay; 'assay dev' and 'assay quickstart' need them"};
}

Check CheckConfig(const Context& context) {
  std::string origins;
  for (const client::Setting& setting : context.config().All())
    if (setting.level != client::Setting::Level::kBuiltIn)
      absl::StrAppend(&origins, origins.empty() ? "" : ", ", setting.key, " from ", setting.origin);
  return {"configuration", "ok", origins.empty() ? "built-in values only" : origins};
}

Check CheckCaCertificate(const Environment& env, const Endpoint& endpoint) {
  const absl::StatusOr<absl::Time> end = NotAfter(endpoint.ca_pem);
  if (end.ok())
    return CheckCertificateEnd("certificate", "the CA's certificate", *end, env,
                               "ask an operator for the new ca.crt");
  return {"certificate", "fail", std::string(end.status().message()),
          "name the coordinator's ca.crt with 'assay config set ca FILE'"};
}

void CheckConnection(Context* context, std::vector<Check>* checks) {
  const absl::StatusOr<client::Client*> client = context->Connect();
  if (!client.ok()) {
    const bool is_absent = absl::IsUnavailable(client.status());
    checks->push_back(
        {"connection", is_absent ? "warn" : "fail",
         is_absent ? "no coordinator is known" : std::string(client.status().message()),
         "assay dev starts a private one; assay help environment"});
    return;
  }
  const Endpoint& endpoint = (*client)->endpoint();
  if (!absl::StartsWith(endpoint.target, "unix:"))
    checks->push_back(CheckCaCertificate(context->env(), endpoint));
  const Environment& env = context->env();
  const absl::Time before = env.clock->Wall();
  const absl::StatusOr<v1::ServerInfo> info =
      (*client)->Call(v1::GetServerInfoRequest(), absl::Seconds(5));
  if (!info.ok()) {
    checks->push_back({"connection", "fail", std::string(info.status().message()),
                       "check address, CA and token: assay config list --origin"});
    return;
  }
  checks->push_back({"connection", "ok",
                     absl::StrCat(endpoint.target, ", version ", info->version(), ", you are ",
                                  info->principal(), " (", info->role(), ")")});
  if (info->has_current_time())
    checks->push_back(CheckOffset(absl::FromUnixSeconds(info->current_time().seconds()) +
                                      absl::Nanoseconds(info->current_time().nanos()),
                                  before, env.clock->Wall()));
  CheckCoordinator(env, **client, *info, checks);
}

Check CheckClock() {
  timex state = {};
  if (ntp_adjtime(&state) == TIME_ERROR)
    return {"clock", "warn", "the kernel says that this host's clock is not synchronised",
            "run chrony or ntpd; offsets to the coordinator are measured in any case"};
  return {"clock", "ok", "synchronised"};
}

Check CheckCaches() {
  if (access("/proc/sys/vm/drop_caches", W_OK) == 0) return {"cache reset", "ok", "drop_caches"};
  return {"cache reset", "warn", "only file by file (posix_fadvise): drop_caches needs root",
          "let the agent run as root, or accept that logs say so"};
}

Check CheckFanotify() {
  const UniqueFd fd(fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY));
  if (fd.is_open()) return {"first touch", "ok", "fanotify"};
  return {"first touch", "warn",
          absl::StrCat("inotify; fanotify is not to be had (", strerror(errno), ")"),
          "let the agent run as root with CAP_SYS_ADMIN, or accept that runs say so"};
}

Check CheckProcessor() {
  const int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  std::string level = "no AVX2";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) level = "AVX2";
  if (__builtin_cpu_supports("avx512f") != 0) level = "AVX-512";
#endif
  const bool is_slow = level == "no AVX2";
  return {"processor", is_slow ? "warn" : "ok",
          absl::StrCat(cores, " cores, ", level, ", ", FormatBytes(memory), " memory"),
          is_slow ? "training on this host's processor will be slow" : ""};
}

// Exit 1 if one fails.
absl::StatusOr<ExitStatus> PrintChecks(Context* context, const std::vector<Check>& checks) {
  ListView view{.schema = "assay.doctor/v1",
                .columns = {{"CHECK", "check"},
                            {"STATE", "state", Format::kState},
                            {"DETAIL", "detail"},
                            {"REMEDY", "remedy", Format::kText, 1}}};
  int failures = 0;
  for (const Check& check : checks) {
    failures += check.state == "fail" ? 1 : 0;
    Json item = {{"check", check.name}, {"state", check.state}, {"detail", check.detail}};
    if (!check.remedy.empty()) item["remedy"] = check.remedy;
    view.items.push_back(item);
    if (context->printer().IsStructured()) continue;
    const Tone tone = ToneOf(check.state);
    context->out() << context->style().Mark(tone) << " " << absl::StrFormat("%-18s", check.name)
                   << check.detail << "\n";
    if (!check.remedy.empty()) context->out() << "    " << check.remedy << "\n";
  }
  if (context->printer().IsStructured()) RETURN_IF_ERROR(context->printer().List(view));
  return failures == 0 ? ExitStatus::kDone : ExitStatus::kFailed;
}

absl::StatusOr<ExitStatus> RunNodeDoctor(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::GetWorkerRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::WorkerName(arguments.Get("NODE")));
  ASSIGN_OR_RETURN(const v1::Worker worker, client->Call(request));
  ASSIGN_OR_RETURN(const v1::ServerInfo info, client->Call(v1::GetServerInfoRequest()));
  std::vector<Check> checks;
  CheckNode(worker, info, &checks);
  checks.push_back(CheckNodeCertificates({worker}, context->env()));
  return PrintChecks(context, checks);
}

absl::StatusOr<ExitStatus> RunDoctor(Context* context, const Arguments&) {
  return PrintChecks(context, Examine(context));
}

}  // namespace

std::vector<Check> Examine(Context* context) {
  std::vector<Check> checks = {CheckPrograms(context->env()), CheckConfig(*context)};
  CheckConnection(context, &checks);
  checks.push_back(CheckClock());
  constexpr double kFreeMin = 2e9;  // the quickstart's dataset and a run, with room
  const std::string home = context->env().Variable("HOME");
  checks.push_back(
      CheckDisk("disk", home.empty() ? "/var/tmp" : home, kFreeMin, "the quickstart wants 2 GB"));
  checks.push_back(CheckCaches());
  checks.push_back(CheckFanotify());
  checks.push_back(CheckProcessor());
  CheckBackends(context->env(), &checks);
  return checks;
}

std::vector<Command> DoctorCommands() {
  return {{.path = "doctor",
           .summary = "check this host, its connection and the coordinator's nodes",
           .description =
               "Each line says ok, warn or fail, and what to do. Exit 1 if one fails. Of this host "
               "also which compute backends work and which libraries of a GPU are missing. Of "
               "the coordinator that is connected to: its clock against this host's, which nodes "
               "are silent, their clocks, versions and certificates, its own certificate, and "
               "whether its site is reached; for an operator on its host also its disk and its "
               "port. A certificate that ends within 30 days is a warning, within 3 a failure.",
           .examples = {{"assay doctor", ""},
                        {"assay doctor --server bench.example.org:7443", ""},
                        {"assay doctor --json", ""}},
           .run = RunDoctor},
          {.path = "node doctor",
           .summary = "check one node as the coordinator knows it",
           .description = "Whether it answers or is drained, its clock and version against the "
                          "coordinator's, its last pre-flight, orders for its cache that have "
                          "failed; with what to do. Exit 1 if one fails.",
           .positionals = {{.name = "NODE",
                            .help = "name of the worker, as w0",
                            .completes = Completes::kNode}},
           .examples = {{"assay node doctor w0", ""}},
           .run = RunNodeDoctor}};
}

}  // namespace assay::cli
