#include "cli/bench/bench.h"

#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

#include "cli/bench/all_reduce.h"
#include "cli/command/ask_program.h"
#include "cli/command/context.h"
#include "cli/command/share.h"
#include "common/json_document.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// Runs one check of the node's pre-flight and shows what it has measured.
absl::StatusOr<ExitStatus> RunCheck(Context* context, absl::string_view check,
                                    std::vector<std::string> options) {
  ASSIGN_OR_RETURN(const std::string program, SiblingProgram(context->env(), "assay-worker"));
  std::vector<std::string> argv = {program, "preflight", "--json",
                                   absl::StrCat("--checks=", check)};
  argv.insert(argv.end(), options.begin(), options.end());
  const std::optional<std::string> answer = AskProgram(argv, {});
  const Json report = answer.has_value() ? ParseJsonDocument<Json>(*answer) : Json();
  if (!report.is_object() || !report.contains("checks") || report["checks"].empty())
    return absl::InternalError(absl::StrCat("assay-worker has measured nothing; run it yourself: ",
                                            program, " preflight --checks=", check));
  const Json& measured = report["checks"].front();
  if (!measured.value("is_measured", false))
    return absl::FailedPreconditionError(
        absl::StrCat("not measured: ", measured.value("problem", std::string("no reason given"))));
  RETURN_IF_ERROR(context->printer().Show({.schema = "assay.bench/v1",
                                           .value = measured,
                                           .fields = {{"what", "check"},
                                                      {"value", "value", Format::kNumber},
                                                      {"unit", "unit"},
                                                      {"how", "detail"},
                                                      {"problem", "problem"}},
                                           .sections = {}}));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunMemory(Context* context, const Arguments&) {
  return RunCheck(context, "memory", {});
}
absl::StatusOr<ExitStatus> RunFlops(Context* context, const Arguments&) {
  return RunCheck(context, "compute", {});
}
absl::StatusOr<ExitStatus> RunDisk(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t mib, arguments.Integer("size", 2048));
  const std::string directory = context->env().AbsolutePath(arguments.Get("DIR"));
  if (!std::filesystem::is_directory(directory))
    return absl::NotFoundError(absl::StrCat("there is no directory ", directory));
  return RunCheck(context, "stage-disk",
                  {absl::StrCat("--stage=", directory), absl::StrCat("--disk_mib=", mib)});
}

const char kSameCheck[] =
    "It is the check that a node makes before a set of runs; what the coordinator's nodes have "
    "measured, and which are slow for their kind, is in 'assay node doctor NODE'.";

}  // namespace

std::vector<Command> BenchCommands() {
  return {AllReduceCommand(),
          {.path = "bench memory",
           .summary = "measure this host's memory bandwidth",
           .description = absl::StrCat(
               "A triad over four times the last-level cache by all threads. ", kSameCheck),
           .examples = {{"assay bench memory", ""}},
           .run = RunMemory},
          {.path = "bench flops",
           .summary = "measure this host's arithmetic in float32",
           .description = absl::StrCat("Products of matrices by oneDNN for 5 s. ", kSameCheck),
           .examples = {{"assay bench flops", ""}},
           .run = RunFlops},
          {.path = "bench disk",
           .summary = "measure writing, syncing and reading below a directory",
           .description = absl::StrCat("Past the caches. Its file is removed. ", kSameCheck),
           .positionals = {{.name = "DIR",
                            .help = "where, for example a node's staging area",
                            .completes = Completes::kDirectory}},
           .options = {{.name = "size",
                        .kind = Option::Kind::kInteger,
                        .value = "MIB",
                        .help = "MiB to write",
                        .fallback = "2048",
                        .min = 1}},
           .examples = {{"assay bench disk /scratch", ""}},
           .run = RunDisk}};
}

}  // namespace assay::cli
