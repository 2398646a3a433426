#include "cli/allocation/join.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "cli/command/ask_program.h"
#include "cli/command/context.h"
#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

std::string TextField(absl::string_view name, const std::string& value) {
  return absl::StrCat(name, ": \"", absl::CEscape(value), "\"\n");
}

// The job in which this program runs, as Slurm knows it.
absl::StatusOr<v1::JoinAllocationRequest> DescribeJob(const Environment& env) {
  v1::JoinAllocationRequest request;
  request.set_job(env.Variable("SLURM_JOB_ID"));
  if (request.job().empty())
    return absl::FailedPreconditionError(
        "SLURM_JOB_ID is not set: run this in a job of Slurm's, as with sbatch or salloc");
  const std::string nodes = env.Variable("SLURM_JOB_NODELIST");
  const std::optional<std::string> hosts = AskProgram({"scontrol", "show", "hostnames", nodes}, {});
  if (!hosts.has_value() || nodes.empty())
    return absl::FailedPreconditionError(absl::StrCat("scontrol does not say which nodes \"", nodes,
                                                      "\" (SLURM_JOB_NODELIST) are: try it"));
  for (const absl::string_view host : absl::StrSplit(*hosts, '\n', absl::SkipWhitespace()))
    request.add_hosts(std::string(absl::StripAsciiWhitespace(host)));
  const std::optional<std::string> end =
      AskProgram({"squeue", "--noheader", absl::StrCat("--jobs=", request.job()), "--format=%e"},
                 {"SLURM_TIME_FORMAT=%s"});
  int64_t end_s = 0;
  if (absl::SimpleAtoi(end.value_or(""), &end_s))
    request.mutable_deadline_time()->set_seconds(end_s);
  return request;
}

// A host and port, and the certificate by which agents know who answers there.
absl::StatusOr<std::string> WorkerText(const Endpoint& endpoint, const std::string& more,
                                       const std::string& ca_path) {
  if (endpoint.ca_pem.empty() || absl::StartsWith(endpoint.target, "unix:"))
    return absl::FailedPreconditionError(
        absl::StrCat("nodes cannot reach the coordinator at ", endpoint.target,
                     ": give its host:port and CA certificate (assay config set)"));
  std::string text = TextField("server_address", endpoint.target);
  absl::StrAppend(&text, TextField("ca_certificate_path", ca_path));
  if (!absl::StrContains(more, "data_directory"))
    absl::StrAppend(&text, TextField("data_directory", "/tmp"));
  absl::StrAppend(&text, more, "\n");
  return text;
}

// What `assay-worker fleet` finds (server/launch/slurm/job_directory.h).
absl::StatusOr<std::string> WriteFolder(const v1::JoinAllocationResponse& joined,
                                        const Endpoint& endpoint, const std::string& more,
                                        const std::string& parent) {
  const v1::Allocation& allocation = joined.allocation();
  const std::string id = client::ShortId(allocation.name());
  const std::string folder = JoinPath(parent, absl::StrCat("own-a", absl::StripPrefix(id, "a-")));
  const std::string tokens = JoinPath(folder, "tokens");
  RETURN_IF_ERROR(MakeDirectories(folder, kPrivateDirectory));
  RETURN_IF_ERROR(MakeDirectories(tokens, kPrivateDirectory));
  const std::string ca_path = JoinPath(folder, "ca.crt");
  RETURN_IF_ERROR(WriteFileAtomic(ca_path, endpoint.ca_pem, kPrivateFile));
  ASSIGN_OR_RETURN(std::string text, WorkerText(endpoint, more, ca_path));
  absl::StrAppend(&text, "labels { key: \"allocation\" value: \"", id, "\" }\n");
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(folder, "worker.textproto"), text, kPrivateFile));
  for (int i = 0; i < joined.enrolment_tokens_size(); ++i) {
    const std::string name = client::ShortId(allocation.workers(i));
    RETURN_IF_ERROR(WriteFileAtomic(JoinPath(tokens, name),
                                    absl::StrCat(joined.enrolment_tokens(i), "\n"), kPrivateFile));
  }
  return folder;
}

absl::StatusOr<ExitStatus> RunJoin(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  std::string more;
  if (arguments.Has("worker")) {
    ASSIGN_OR_RETURN(more, ReadFile(arguments.Get("worker")));
  }
  // Before anything changes.
  RETURN_IF_ERROR(WorkerText(client->endpoint(), more, "").status());
  ASSIGN_OR_RETURN(v1::JoinAllocationRequest request, DescribeJob(context->env()));
  ASSIGN_OR_RETURN(*request.mutable_name(), client::EntryName(*client, arguments.Get("ENTRY")));
  ASSIGN_OR_RETURN(const v1::JoinAllocationResponse joined, client->Call(request));
  const std::string parent = std::filesystem::absolute(arguments.Get("DIR"));
  ASSIGN_OR_RETURN(const std::string folder, WriteFolder(joined, client->endpoint(), more, parent));
  if (context->printer().IsJson()) {
    Json json = client::AllocationJson(joined.allocation());
    json["directory"] = folder;
    RETURN_IF_ERROR(context->printer().Show({.schema = "assay.allocation/v1", .value = json}));
    return ExitStatus::kDone;
  }
  context->out() << folder << "\n";
  context->Note(absl::StrCat(
      client::ShortId(joined.allocation().name()), " is for ", client::ShortId(request.name()),
      " alone; start its agents within 5 min:\n  srun --overlap --no-kill --kill-on-bad-exit=0 "
      "--wait=0 --ntasks-per-node=1 assay-worker fleet ",
      folder));
  return ExitStatus::kDone;
}

}  // namespace

Command JoinCommand() {
  return {
      .path = "allocation join",
      .summary = "bring the nodes of your own job for an entry",
      .description =
          "Runs in your own job of Slurm's (sbatch, salloc). Makes in DIR, which all nodes must "
          "see, a folder that your user alone can read, with what the agents of the job need, "
          "and prints its path. The agents serve that entry alone, and leave when it has "
          "ended. Its runs say \"submitter's allocation\": what watches them is "
          "started by the user who submitted them.",
      .positionals = {{.name = "ENTRY", .help = "as e-42", .completes = Completes::kEntry},
                      {.name = "DIR", .help = "a folder on a file system of all nodes"}},
      .options = {{.name = "worker",
                   .kind = Option::Kind::kText,
                   .value = "FILE",
                   .help = "more for the agents: fields of WorkerConfig, as data_directory"}},
      .examples = {{"srun --overlap --no-kill --kill-on-bad-exit=0 --wait=0 "
                    "--ntasks-per-node=1 assay-worker fleet "
                    "\"$(assay allocation join e-42 ~/assay)\"",
                    "in a job script"}},
      .run = RunJoin};
}

}  // namespace assay::cli
