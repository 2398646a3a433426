#include "cli/bench/mpi.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "cli/command/share.h"
#include "common/file.h"
#include "common/process.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// Words of the variable, which may have options: MPIEXEC="srun --mpi=pmix".
std::vector<std::string> CommandOf(const Environment& environment, absl::string_view variable,
                                   absl::string_view otherwise) {
  const std::string value = environment.Variable(variable);
  return absl::StrSplit(value.empty() ? otherwise : absl::string_view(value), ' ',
                        absl::SkipWhitespace());
}

// Of Open MPI alone, which else starts nothing for root and no more ranks than it counts cores.
std::vector<std::string> OpenMpiVariables() {
  std::vector<std::string> variables = {"OMPI_MCA_rmaps_base_oversubscribe=1"};
  if (geteuid() == 0) {
    variables.emplace_back("OMPI_ALLOW_RUN_AS_ROOT=1");
    variables.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  }
  return variables;
}

// What it has printed.
absl::StatusOr<std::string> Run(std::vector<std::string> argv, const std::string& output_path,
                                absl::string_view variable, absl::Duration patience) {
  const std::string name = argv.front();
  argv.insert(argv.begin(), "/usr/bin/env");  // finds it by PATH
  ASSIGN_OR_RETURN(const ProcessId process, Spawn({.argv = std::move(argv),
                                                   .environment = OpenMpiVariables(),
                                                   .output_path = output_path}));
  const absl::StatusOr<int> code = WaitForExit(process, patience);
  if (!code.ok()) {
    StopGroup(process, absl::ZeroDuration()).IgnoreError();
    return Annotate(code.status(), absl::StrCat(name, " (", variable, " names another)"));
  }
  const std::string printed = ReadFile(output_path).value_or("");
  if (*code == 0) return printed;
  return absl::FailedPreconditionError(absl::StrCat(
      name, " has ended with ", *code, ": ", absl::StripAsciiWhitespace(printed),
      "; --mpi needs this host's MPI with its compiler (", variable, " names another)"));
}

}  // namespace

absl::StatusOr<MpiTimes> MeasureMpi(const Environment& environment, int ranks,
                                    const std::vector<int64_t>& sizes, const std::string& directory,
                                    absl::Duration patience) {
  ASSIGN_OR_RETURN(const std::string share, ShareDirectory(environment, "bench"));
  const std::string program = JoinPath(directory, "all_reduce_mpi");
  std::vector<std::string> compile = CommandOf(environment, "MPICC", "mpicc");
  for (const std::string& word :
       {std::string("-O2"), std::string("-o"), program, JoinPath(share, "all_reduce_mpi.c")})
    compile.push_back(word);
  RETURN_IF_ERROR(
      Run(std::move(compile), JoinPath(directory, "mpicc"), "MPICC", patience).status());
  std::vector<std::string> start = CommandOf(environment, "MPIEXEC", "mpiexec");
  for (const std::string& word : {std::string("-n"), absl::StrCat(ranks), program})
    start.push_back(word);
  for (const int64_t bytes : sizes)
    start.push_back(absl::StrCat(bytes));
  ASSIGN_OR_RETURN(const std::string printed,
                   Run(std::move(start), JoinPath(directory, "mpiexec"), "MPIEXEC", patience));
  MpiTimes times;
  for (absl::string_view line : absl::StrSplit(printed, '\n'))
    if (absl::ConsumePrefix(&line, "library ")) times.library = std::string(line);
  ASSIGN_OR_RETURN(times.time_us, ReadTimes(printed, sizes, "the ranks of MPI"));
  return times;
}

}  // namespace assay::cli
