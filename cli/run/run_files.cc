#include "cli/run/run_files.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "cli/command/context.h"
#include "common/client/artifacts.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::Status ListFiles(Context* context, const v1::Run& run) {
  const Json value = client::RunJson(run);
  return context->printer().List(
      {.schema = "assay.artifact/v1",
       .items = value.value("artifacts", Json::array()),
       .columns = {{"FILE", "file"},
                   {"SIZE", "bytes", Format::kBytes},
                   {"SHA-256", "sha256", Format::kText, 1}},
       .empty_text =
           absl::StrCat(client::ShortId(run.name()), " has no files yet; they come as it ends")});
}

absl::StatusOr<v1::ArtifactRef> FindFile(const v1::Run& run, const std::string& name) {
  const auto found =
      std::find_if(run.artifacts().begin(), run.artifacts().end(),
                   [&name](const v1::ArtifactRef& file) { return file.file_name() == name; });
  if (found != run.artifacts().end()) return *found;
  const std::string id = client::ShortId(run.name());
  return absl::NotFoundError(absl::StrCat(id, " has no file ", name, "; 'assay run files ", id,
                                          "' lists those that it has"));
}

absl::Status SaveFiles(Context* context, const client::Client& client,
                       const std::vector<v1::ArtifactRef>& files, const std::string& directory) {
  RETURN_IF_ERROR(MakeDirectories(directory));
  ProgressLine progress(context);
  for (const v1::ArtifactRef& file : files) {
    progress.Draw(absl::StrCat("fetching ", file.file_name()));
    ASSIGN_OR_RETURN(const std::string bytes, client::DownloadArtifact(client, file));
    RETURN_IF_ERROR(
        WriteFileAtomic(JoinPath(directory, client::PathPart(file.file_name())), bytes));
  }
  progress.Clear();
  context->Note(absl::StrCat("saved ", files.size(), files.size() == 1 ? " file" : " files",
                             ", digests checked, to ", directory));
  return absl::OkStatus();
}

absl::StatusOr<ExitStatus> RunRunFiles(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Run run, client::GetRun(*client, arguments.Get("ID")));
  std::vector<v1::ArtifactRef> files(run.artifacts().begin(), run.artifacts().end());
  const bool is_one = arguments.Has("NAME");
  if (is_one) {
    ASSIGN_OR_RETURN(const v1::ArtifactRef file, FindFile(run, arguments.Get("NAME")));
    files = {file};
  }
  if (arguments.Has("to")) {
    RETURN_IF_ERROR(
        SaveFiles(context, *client, files, context->env().AbsolutePath(arguments.Get("to"))));
  } else if (is_one) {
    ASSIGN_OR_RETURN(const std::string bytes, client::DownloadArtifact(*client, files.front()));
    *context->env().exact_out() << bytes << std::flush;
  } else {
    RETURN_IF_ERROR(ListFiles(context, run));
  }
  return ExitStatus::kDone;
}

// trainer_3.out and program_3.out are of rank 3, program_node_1.out of all ranks of node 1,
// launcher.out of srun or mpirun.
bool IsOutput(const std::string& file) {
  return absl::EndsWith(file, ".out") &&
         (absl::StartsWith(file, "trainer_") || absl::StartsWith(file, "program_") ||
          file == "launcher.out");
}

bool IsOfRank(const std::string& file, int64_t rank) {
  return file == absl::StrCat("trainer_", rank, ".out") ||
         file == absl::StrCat("program_", rank, ".out");
}

}  // namespace

absl::StatusOr<ExitStatus> PrintOutputs(Context* context, const std::string& id,
                                        std::optional<int64_t> rank) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Run run, client::GetRun(*client, id));
  std::vector<v1::ArtifactRef> outputs;
  std::vector<std::string> names;
  for (const v1::ArtifactRef& file : run.artifacts()) {
    if (!IsOutput(file.file_name())) continue;
    names.push_back(file.file_name());
    if (!rank || IsOfRank(file.file_name(), *rank)) outputs.push_back(file);
  }
  const std::string short_id = client::ShortId(run.name());
  if (names.empty())
    return absl::NotFoundError(absl::StrCat(
        short_id, " has kept nothing that its processes printed; it comes as the run ends"));
  if (outputs.empty())
    return absl::NotFoundError(absl::StrCat("rank ", *rank, " of ", short_id,
                                            " has no output of its own; there are ",
                                            absl::StrJoin(names, ", ")));
  std::ostream& out = *context->env().exact_out();
  for (const v1::ArtifactRef& file : outputs) {
    ASSIGN_OR_RETURN(const std::string bytes, client::DownloadArtifact(*client, file));
    if (outputs.size() > 1) out << "==> " << file.file_name() << " <==\n";
    out << bytes;
    if (outputs.size() > 1 && !bytes.empty() && bytes.back() != '\n') out << "\n";
  }
  out << std::flush;
  return ExitStatus::kDone;
}

Command RunFilesCommand(const std::string& path) {
  return {
      .path = path,
      .summary = "list, print or save the files of a run",
      .description =
          "What its nodes have sent: the log, what programs printed, what they "
          "made. Every file's digest is checked as it arrives.",
      .positionals = {{.name = "ID",
                       .help = "r-901 or @last",
                       .is_required = false,
                       .completes = Completes::kRun},
                      {.name = "NAME", .help = "print this file", .is_required = false}},
      .options = {{.name = "to",
                   .kind = Option::Kind::kText,
                   .value = "DIR",
                   .help = "save in this folder: NAME, or all of them",
                   .completes = Completes::kDirectory}},
      .examples = {{absl::StrCat("assay ", path, " r-901"), ""},
                   {absl::StrCat("assay ", path, " r-901 program_0.out"), "what rank 0 printed"},
                   {absl::StrCat("assay ", path, " @last --to evidence"), ""}},
      .run = RunRunFiles};
}

}  // namespace assay::cli
