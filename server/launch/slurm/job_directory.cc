#include "server/launch/slurm/job_directory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::launch::slurm {
namespace {

constexpr int64_t kMinuteUs = 60LL * 1'000'000;
constexpr int64_t kDayMinutes = 24LL * 60;
constexpr char kScript[] = "job.sh";
constexpr char kCa[] = "ca.crt";
constexpr char kTokens[] = "tokens";
constexpr char kConfigEnd[] = "end of the configuration";  // no line of a text proto

// For a shell, as one word.
std::string ShellWord(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string NameOf(core::AllocationId allocation) {
  return absl::StrCat("a", allocation.number);
}

std::string TextField(const std::string& name, const std::string& value) {
  return absl::StrCat(name, ": \"", absl::CEscape(value), "\"\n");
}

}  // namespace

JobDirectory::JobDirectory(JobDirectoryOptions options) : options_(std::move(options)) {}

std::string JobDirectory::PathOf(core::AllocationId allocation) const {
  return JoinPath(options_.directory, NameOf(allocation));
}

// What all agents are told, as text: `folder` is on the nodes, too, or empty.
std::string JobDirectory::WorkerText(core::AllocationId allocation,
                                     const std::string& folder) const {
  return absl::StrCat(options_.worker_config,
                      folder.empty() ? TextField("ca_certificate", options_.ca_pem)
                                     : TextField("ca_certificate_path", JoinPath(folder, kCa)),
                      "labels { key: \"", core::kAllocationLabel, "\" value: \"",
                      allocation.ToString(), "\" }\n");
}

// --overlap: programs may start steps of their own. --no-kill, --wait=0: the end of one agent, or
// the loss of its node, does not end the others.
std::string JobDirectory::ScriptText(core::AllocationId allocation) const {
  const std::string path = PathOf(allocation);
  const std::string srun =
      options_.command_directory.empty() ? "srun" : JoinPath(options_.command_directory, "srun");
  const std::string begin =
      absl::StrCat("#!/bin/sh\n# Written by the coordinator: one agent on each node of allocation ",
                   allocation.ToString(), ".\nPATH=/usr/local/bin:/usr/bin:/bin; export PATH\n");
  const std::string run =
      absl::StrCat("exec ", ShellWord(srun),
                   " --overlap --no-kill --kill-on-bad-exit=0 --wait=0 --ntasks-per-node=1 ",
                   ShellWord(options_.worker_program), " fleet ");
  if (options_.is_shared) return absl::StrCat(begin, run, ShellWord(path), "\n");
  const std::string name = NameOf(allocation);
  const std::string said = JoinPath(options_.node_directory, absl::StrCat(name, "-XXXXXX.out"));
  return absl::StrCat(begin, "umask 077\nmkdir -p ", ShellWord(options_.node_directory),
                      "\nsaid=$(mktemp ", ShellWord(said), ") || said=/dev/null\n", run, "- ", name,
                      " >\"$said\" 2>&1 <<'", kConfigEnd, "'\n", WorkerText(allocation, ""),
                      kConfigEnd, "\n");
}

absl::Status JobDirectory::WriteFiles(core::AllocationId allocation) const {
  const std::string path = PathOf(allocation);
  RETURN_IF_ERROR(MakeDirectories(path, kPrivateDirectory));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(path, kScript), ScriptText(allocation), 0700));
  if (!options_.is_shared) return absl::OkStatus();
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(path, kCa), options_.ca_pem, kPrivateFile));
  return WriteFileAtomic(JoinPath(path, "worker.textproto"), WorkerText(allocation, path),
                         kPrivateFile);
}

absl::StatusOr<JobRequest> JobDirectory::Prepare(const core::Allocation& allocation) {
  const auto found = options_.profiles.find(allocation.spec.profile);
  if (found == options_.profiles.end())
    return absl::NotFoundError(
        absl::StrCat("profile ", allocation.spec.profile, " is not configured any more"));
  RETURN_IF_ERROR(WriteFiles(allocation.id));
  const JobProfile& profile = found->second;
  const int64_t most = profile.minutes_max > 0 ? profile.minutes_max : kDayMinutes;
  const int64_t wanted = (allocation.spec.lifetime_us + kMinuteUs - 1) / kMinuteUs;
  std::vector<std::string> options = profile.options;
  if (const auto account = profile.accounts.find(allocation.spec.organization);
      account != profile.accounts.end())
    options.push_back(absl::StrCat("--account=", account->second));
  if (!allocation.spec.wanted_hosts.empty())
    options.push_back(
        absl::StrCat("--nodelist=", absl::StrJoin(allocation.spec.wanted_hosts, ",")));
  if (!allocation.spec.excluded_hosts.empty())
    options.push_back(
        absl::StrCat("--exclude=", absl::StrJoin(allocation.spec.excluded_hosts, ",")));
  const std::string path = PathOf(allocation.id);
  return JobRequest{.minutes = wanted > 0 ? wanted : most,
                    .directory = options_.is_shared ? path : "/",
                    .output_path = options_.is_shared ? "job.out" : "/dev/null",
                    .script_path = JoinPath(path, kScript),
                    .options = std::move(options)};
}

absl::Status JobDirectory::Admit(core::AllocationId allocation,
                                 const std::vector<std::string>& workers) {
  return options_.is_by_munge ? absl::OkStatus() : WriteTokens(allocation, workers);
}

absl::Status JobDirectory::WriteTokens(core::AllocationId allocation,
                                       const std::vector<std::string>& workers) const {
  const std::string tokens = JoinPath(PathOf(allocation), kTokens);
  RETURN_IF_ERROR(MakeDirectories(tokens, kPrivateDirectory));
  for (const std::string& worker : workers) {
    ASSIGN_OR_RETURN(const std::string token, options_.make_enrolment_token(worker));
    RETURN_IF_ERROR(
        WriteFileAtomic(JoinPath(tokens, worker), absl::StrCat(token, "\n"), kPrivateFile));
  }
  return absl::OkStatus();
}

JobDirectory::~JobDirectory() {
  for (const auto& [allocation, salvages] : salvages_)
    for (const ProcessId& salvage : salvages)
      static_cast<void>(StopGroup(salvage, absl::ZeroDuration()));
}

absl::StatusOr<ProcessId> JobDirectory::StartSalvage(core::AllocationId allocation,
                                                     const std::string& worker) {
  RETURN_IF_ERROR(WriteTokens(allocation, {worker}));
  LOG(INFO) << "delivers what worker=" << worker << " left";
  return Spawn({.argv = {options_.local_program, "salvage", PathOf(allocation), worker},
                .output_path = JoinPath(PathOf(allocation), "job.out")});
}

bool JobDirectory::Settle(core::AllocationId allocation) {
  const auto [it, is_new] = salvages_.try_emplace(allocation);
  std::vector<ProcessId>& salvages = it->second;
  const absl::StatusOr<std::vector<std::string>> workers =
      is_new ? ListDirectory(JoinPath(PathOf(allocation), "salvage")) : std::vector<std::string>{};
  for (const std::string& worker : workers.value_or(std::vector<std::string>{})) {
    const absl::StatusOr<ProcessId> salvage = StartSalvage(allocation, worker);
    if (salvage.ok()) salvages.push_back(*salvage);
    if (!salvage.ok()) LOG(ERROR) << "worker=" << worker << " status=" << Quoted(salvage.status());
  }
  std::erase_if(salvages, [](const ProcessId& salvage) {
    return !absl::IsDeadlineExceeded(WaitForExit(salvage, absl::ZeroDuration()).status());
  });
  if (!salvages.empty()) return false;
  salvages_.erase(it);
  return true;
}

void JobDirectory::Close(core::AllocationId allocation, bool is_in_order) {
  const std::string path = PathOf(allocation);
  const absl::Status removed = RemoveTree(is_in_order ? path : JoinPath(path, kTokens));
  if (!removed.ok()) LOG(WARNING) << "not removed path=" << path << " status=" << Quoted(removed);
}

}  // namespace assay::launch::slurm
