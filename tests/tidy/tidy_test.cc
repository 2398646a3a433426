// The rules of the house that no compiler checks: who may include whom, and how long a file may be.
// The table is the one of docs/architecture.md; a new folder needs a row here.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

constexpr int kFileLinesMax = 500;

// A folder, the project folders that it may include besides itself, and the third-party headers
// that it may not.
struct Row {
  std::string folder;
  std::vector<std::string> may_include;
  std::vector<std::string> may_not;
};

const std::vector<std::string> kGrpc = {"grpc"};
const std::vector<std::string> kGrpcProto = {"grpc", "assay/v1/"};
const std::vector<std::string> kPure = {"grpc",  "assay/v1/", "sqlite3",  "thread",
                                        "mutex", "fstream",   "unistd.h", "random"};

const std::vector<std::string> kNoStore = {"sqlite3", "oneapi"};

// A folder of commands about one thing; `nouns` are the others that it uses.
Row CliNoun(const std::string& folder, const std::vector<std::string>& nouns = {}) {
  Row row = {folder,
             {"common", "common/rules", "common/analysis", "common/package", "common/rpc",
              "common/dataset", "common/telemetry", "common/client", "cli/terminal", "cli/command"},
             kNoStore};
  row.may_include.insert(row.may_include.end(), nouns.begin(), nouns.end());
  return row;
}

// The wiring of a program may include every part of it.
bool IsWiring(const Row& row) {
  return row.folder == "server" || row.folder == "cli";
}

const std::vector<Row>& Table() {
  static const std::vector<Row> table = {
      {"common/rules", {"common"}, kPure},
      {"common/analysis", {"common", "common/rules"}, kPure},
      {"common/package", {"common", "common/rules"}, {"grpc", "assay/v1/", "sqlite3", "thread"}},
      {"common/rpc", {"common", "common/rules"}, {"sqlite3"}},
      {"common/client",
       {"common", "common/rules", "common/analysis", "common/package", "common/rpc",
        "common/telemetry"},
       {"sqlite3", "CLI/", "iostream"}},
      {"common/dataset", {"common"}, {"grpc", "assay/v1/", "sqlite3"}},
      {"common/source", {"common"}, {"grpc", "assay/v1/", "sqlite3", "thread"}},
      {"common/database", {"common"}, kGrpcProto},
      {"common/munge", {"common"}, {"grpc", "assay/v1/", "sqlite3", "thread"}},
      {"common/telemetry", {"common"}, {"grpc", "assay/v1/", "sqlite3", "thread"}},
      {"common", {}, {"grpc", "assay/v1/", "sqlite3"}},
      {"server/core", {"common", "common/rules"}, kPure},
      {"server/store", {"common", "common/rules", "server/core"}, kGrpcProto},
      {"server/auth", {"common", "server/core", "server/runtime"}, {"grpc", "sqlite3"}},
      {"server/gate", {"common", "server/auth"}, kGrpcProto},
      {"server/launch", {"common", "server/core", "server/launch/slurm"}, {"grpc", "sqlite3"}},
      {"server/launch/slurm", {"common", "server/core", "server/launch"}, {"grpc", "sqlite3"}},
      {"server/runtime",
       {"common", "common/rules", "common/telemetry", "server/core", "server/store",
        "server/launch"},
       kGrpcProto},
      {"server/api",
       {"common", "common/munge", "common/rules", "common/rpc", "server/core", "server/runtime",
        "server/auth", "server/gate"},
       {"sqlite3"}},
      {"server/metrics",
       {"common", "common/rules", "server/core", "server/runtime", "server/web"},
       kGrpcProto},
      {"server/notify", {"common", "server/core", "server/store", "server/runtime"}, kGrpcProto},
      {"server/web",
       {"common", "common/rules", "common/analysis", "common/client", "common/rpc",
        "common/telemetry"},
       {"sqlite3"}},
      {"worker/engine", {"common"}, kGrpcProto},
      {"worker/models", {"common", "worker/engine"}, kGrpcProto},
      {"worker/data", {"common", "common/dataset"}, kGrpcProto},
      {"worker/comm", {"common"}, kGrpcProto},
      {"worker/trainer",
       {"common", "common/rules", "common/dataset", "worker/engine", "worker/models", "worker/data",
        "worker/comm"},
       kGrpc},
      {"worker/cache", {"common", "common/dataset", "worker/data"}, kGrpcProto},
      {"worker/agent",
       {"common", "common/dataset", "common/munge", "common/rules", "common/rpc",
        "worker/agent/preflight", "worker/agent/telemetry", "worker/agent/workload", "worker/cache",
        "worker/privileged"},
       {"sqlite3", "oneapi", "dnnl", "cuda"}},
      {"worker/privileged", {"common"}, kGrpcProto},
      {"worker/agent/preflight",
       {"common"},
       {"grpc", "assay/v1/", "sqlite3", "oneapi", "dnnl", "cuda"}},
      {"worker/agent/telemetry",
       {"common", "common/telemetry"},
       {"grpc", "assay/v1/", "sqlite3", "oneapi", "dnnl", "cuda"}},
      {"worker/agent/workload",
       {"common", "common/dataset", "common/source", "worker/agent"},
       {"grpc", "sqlite3", "oneapi", "dnnl", "cuda"}},
      // What people see; what a command is; the nouns, each with those that it builds on.
      {"cli/terminal", {"common", "common/client"}, kNoStore},
      {"cli/command", {"common", "common/client", "cli/terminal"}, kNoStore},
      CliNoun("cli/admin", {"cli/coordinator"}),
      CliNoun("cli/dataset"),
      CliNoun("cli/allocation"),
      CliNoun("cli/node"),
      CliNoun("cli/rules"),
      CliNoun("cli/run"),
      CliNoun("cli/analyze", {"cli/rules", "cli/run"}),
      CliNoun("cli/package", {"cli/rules"}),
      CliNoun("cli/entry", {"cli/rules", "cli/run", "common/source"}),
      CliNoun("cli/history", {"cli/entry", "common/database"}),
      CliNoun("cli/web"),
      CliNoun("cli/coordinator", {"cli/dataset", "cli/entry", "cli/web"}),
      // The wiring of the command line and of the daemon.
      {"cli", {"common", "cli"}, kNoStore},
      {"server", {"common", "common/munge", "common/rules", "common/rpc", "server"}, {"sqlite3"}},
  };
  return table;
}

const std::vector<std::string> kTopFolders = {"common", "server", "worker", "cli", "tests"};

struct Include {
  std::string path;
  bool is_ours = false;  // in quotes and below one of our folders
};

std::optional<Include> ParseInclude(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#include ")) return std::nullopt;
  line = absl::StripAsciiWhitespace(line);
  if (line.size() < 2) return std::nullopt;
  const bool is_quoted = line[0] == '"';
  const size_t end = line.find(is_quoted ? '"' : '>', 1);
  if (end == absl::string_view::npos) return std::nullopt;
  const std::string path(line.substr(1, end - 1));
  const bool is_ours =
      is_quoted && std::any_of(kTopFolders.begin(), kTopFolders.end(), [&](const std::string& top) {
        return absl::StartsWith(path, absl::StrCat(top, "/"));
      });
  return Include{path, is_ours};
}

bool IsBelow(absl::string_view path, absl::string_view folder) {
  return absl::StartsWith(path, absl::StrCat(folder, "/"));
}

// The most specific row for a path: common/rules before common.
const Row* RowOf(absl::string_view path) {
  const Row* best = nullptr;
  for (const Row& row : Table()) {
    if (IsBelow(path, row.folder) && (best == nullptr || row.folder.size() > best->folder.size())) {
      best = &row;
    }
  }
  return best;
}

// What is wrong with `file` including `include`; nullopt if nothing is.
std::optional<std::string> Judge(const std::string& file, const Include& include) {
  const Row* row = RowOf(file);
  if (row == nullptr) return absl::StrCat(file, ": no row in the table");
  if (!include.is_ours) {
    for (const std::string& word : row->may_not) {
      if (absl::StartsWith(include.path, word))
        return absl::StrCat(file, ": ", row->folder, " may not include <", include.path, ">");
    }
    return std::nullopt;
  }
  const Row* target = RowOf(include.path);
  const std::string folder = target == nullptr ? include.path : target->folder;
  if (folder == row->folder) return std::nullopt;
  const bool is_allowed = std::any_of(
      row->may_include.begin(), row->may_include.end(), [&](const std::string& allowed) {
        return folder == allowed || (IsWiring(*row) && IsBelow(folder, allowed));
      });
  if (is_allowed) return std::nullopt;
  return absl::StrCat(file, ": ", row->folder, " may not include ", include.path);
}

struct Source {
  std::string path;  // relative to the repository
  std::vector<std::string> lines;
};

std::vector<Source> Sources(const std::vector<std::string>& folders) {
  std::vector<Source> sources;
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() ||
          (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".proto"))
        continue;
      std::ifstream file(entry.path());
      std::stringstream content;
      content << file.rdbuf();
      sources.push_back({entry.path().string(), absl::StrSplit(content.str(), '\n')});
    }
  }
  return sources;
}

TEST(IncludeTableTest, EveryIncludeIsAllowed) {
  std::vector<std::string> problems;
  int include_count = 0;
  for (const Source& source : Sources({"common", "server", "worker", "cli"})) {
    for (const std::string& line : source.lines) {
      const std::optional<Include> include = ParseInclude(line);
      if (!include.has_value()) continue;
      ++include_count;
      const std::optional<std::string> problem = Judge(source.path, *include);
      if (problem.has_value()) problems.push_back(*problem);
    }
  }

  EXPECT_GT(include_count, 100) << "run from the root of the repository";
  EXPECT_THAT(problems, IsEmpty());
}

// So compiling the source proves that its header includes what it needs
// (deploy/cmake/AssayTargets.cmake).
TEST(IncludeOrderTest, ASourceIncludesItsOwnHeaderFirst) {
  std::vector<std::string> problems;
  int pair_count = 0;
  for (const Source& source : Sources({"common", "server", "worker", "cli", "tests"})) {
    absl::string_view stem = source.path;
    if (!absl::ConsumeSuffix(&stem, ".cc")) continue;
    const std::string header = absl::StrCat(stem, ".h");
    if (!fs::exists(header)) continue;
    ++pair_count;
    for (const std::string& line : source.lines) {
      const std::optional<Include> include = ParseInclude(line);
      if (!include.has_value()) continue;
      if (include->path != header)
        problems.push_back(
            absl::StrCat(source.path, ": includes ", include->path, " before ", header));
      break;
    }
  }

  EXPECT_GT(pair_count, 100) << "run from the root of the repository";
  EXPECT_THAT(problems, IsEmpty());
}

// The checker itself: each of these would be a hole in the table.
TEST(IncludeTableTest, ForbiddenIncludesAreFound) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"server/core/decide.cc", "#include \"server/store/store.h\""},
      {"server/core/decide.cc", "#include <sqlite3.h>"},
      {"server/runtime/core_thread.cc", "#include <grpcpp/grpcpp.h>"},
      {"common/rules/check.cc", "#include <thread>"},
      {"common/rules/check.cc", "#include \"common/package/results_tree.h\""},
      {"common/package/results_tree.cc", "#include \"common/dataset/layout.h\""},
      {"worker/agent/agent.cc", "#include \"worker/engine/tensor.h\""},
      {"worker/engine/model.cc", "#include \"assay/v1/run_spec.pb.h\""},
      {"common/client/watch.cc", "#include \"cli/print.h\""},
      {"common/client/watch.cc", "#include <iostream>"},
      {"server/web/site.cc", "#include \"server/auth/permissions.h\""},
      {"server/web/site.cc", "#include <sqlite3.h>"},
      {"cli/run/run.cc", "#include \"server/core/types.h\""},
      {"cli/run/run.cc", "#include \"cli/entry/entry.h\""},
      {"cli/run/run.cc", "#include \"cli/app.h\""},
      {"cli/terminal/print.cc", "#include \"cli/command/command.h\""},
      {"common/file.cc", "#include \"common/rules/check.h\""},
  };
  for (const auto& [file, line] : cases) {
    const std::optional<Include> include = ParseInclude(line);
    ASSERT_TRUE(include.has_value());
    EXPECT_TRUE(Judge(file, *include).has_value()) << file << " " << line;
  }
}

// What differs between rounds is data of their packs. A text literal that is a round's name, as in
// `if (round == "hpc-3.0.0")`, is how code would know one.
TEST(RoundTest, NoCodeNamesARound) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator("common/rules/rounds")) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().stem().string();
    const std::string version(absl::StripPrefix(name, "hpc-"));
    const std::string brief(absl::StripSuffix(version, ".0"));
    for (const std::string& known : {name, version, brief, absl::StrCat("v", brief)})
      names.push_back(absl::StrCat("\"", known, "\""));
  }
  ASSERT_GE(names.size(), 4u);
  std::vector<std::string> problems;
  for (const Source& source :
       Sources({"common/rules", "common/package", "common/client", "server", "worker", "cli"})) {
    for (const std::string& line : source.lines) {
      const std::string code = line.substr(0, line.find("//"));
      for (const std::string& name : names)
        if (absl::StrContains(code, name))
          problems.push_back(absl::StrCat(source.path, ": ", line));
    }
  }

  EXPECT_THAT(problems, IsEmpty());
}

TEST(FileTest, NoFileIsLongerThanItsBudget) {
  std::vector<std::string> problems;
  for (const Source& source : Sources(kTopFolders)) {
    const size_t lines = source.lines.size() - 1;
    if (lines > kFileLinesMax) problems.push_back(absl::StrCat(source.path, ": ", lines));
  }

  EXPECT_THAT(problems, IsEmpty()) << "over " << kFileLinesMax << " lines: split by idea";
}

TEST(FileTest, EveryHeaderHasTheGuardOfItsPath) {
  std::vector<std::string> problems;
  for (const Source& source : Sources(kTopFolders)) {
    if (!absl::EndsWith(source.path, ".h")) continue;
    std::string guard = source.path + "_";
    for (char& c : guard)
      c = std::isalnum(static_cast<unsigned char>(c)) != 0
              ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
              : '_';
    const std::string wanted = absl::StrCat("#ifndef ", guard);
    if (std::find(source.lines.begin(), source.lines.end(), wanted) == source.lines.end())
      problems.push_back(absl::StrCat(source.path, ": want ", wanted));
  }

  EXPECT_THAT(problems, IsEmpty());
}

// A word that may stand in some files only, because what it names is safe only there
// (docs/adr/0152-one-way-to-the-terminal.md).
struct Reserved {
  std::string word;
  std::vector<std::string> files;
};

TEST(FileTest, TheSafeWaysAreTheOnlyOnes) {
  const std::vector<Reserved> reserved = {
      {"toml::parse(", {"common/toml.cc"}},
      {"son::parse(", {"common/json_document.h"}},
      {"std::cout",
       {"cli/terminal/environment.cc", "server/main.cc", "server/web/main.cc",
        "worker/agent/main.cc", "worker/privileged/main.cc", "worker/trainer/main.cc"}},
      {"std::cerr",
       {"cli/terminal/environment.cc", "server/main.cc", "server/web/main.cc",
        "worker/agent/main.cc", "worker/privileged/main.cc", "worker/trainer/main.cc"}},
      {"raw_out", {"cli/app.cc", "cli/terminal/environment.h", "cli/terminal/screen.cc"}},
      {"raw_err", {"cli/app.cc", "cli/terminal/environment.h", "cli/command/context.cc"}},
      {"exact_out",
       {"cli/terminal/environment.h", "cli/terminal/print.cc", "cli/run/event_printer.cc",
        "cli/run/run_files.cc"}},
      {"std::printf(", {}},
      {"fprintf(", {}},
      {"ifstream", {}},
      {"fopen(", {}},
  };
  std::vector<std::string> problems;
  for (const Source& source : Sources({"common", "server", "worker", "cli"})) {
    for (const std::string& line : source.lines) {
      for (const Reserved& row : reserved) {
        const bool may =
            std::find(row.files.begin(), row.files.end(), source.path) != row.files.end();
        if (!may && absl::StrContains(line, row.word))
          problems.push_back(absl::StrCat(source.path, ": ", row.word));
      }
    }
  }

  EXPECT_THAT(problems, IsEmpty());
}

// Where code names a benchmark, besides its workload. The first are the places of CONTRIBUTING.md,
// "Add a benchmark"; no other one may be needed.
const std::vector<std::string>& BenchmarkPlaces() {
  static const std::vector<std::string> places = {
      "worker/models/",
      "worker/trainer/workload.cc",
      "worker/data/sample_format.",
      "common/dataset/",
      "common/analysis/flops.",
      "cli/dataset/dataset_files.cc",
      // The paper's numbers.
      "common/analysis/published",
      // The published table of comparable rounds.
      "common/analysis/compatibility.",
      // The size of a facility's CosmoFlow, for its arithmetic.
      "cli/analyze/analyze.cc",
      // Databases from before workloads.
      "server/store/former_members.h",
      // The walk through the product, and examples in help.
      "cli/coordinator/quickstart.cc",
      "cli/command/help.cc",
      "cli/entry/entry.cc",
      "cli/entry/submission_file.cc",
      "cli/entry/submission_keys.cc",
      "cli/entry/submit.cc",
      "cli/rules/hyperparameters.cc",
  };
  return places;
}

// The benchmarks of the trainer's table: {"cosmoflow", MakeCosmoflowWorkload}.
std::vector<std::string> BenchmarkNames() {
  std::vector<std::string> names;
  for (const Source& source : Sources({"worker/trainer"})) {
    if (source.path != "worker/trainer/workload.cc") continue;
    for (absl::string_view line : source.lines) {
      if (!absl::ConsumePrefix(&line, "    {\"") || !absl::StrContains(line, "Workload}")) continue;
      names.emplace_back(line.substr(0, line.find('"')));
    }
  }
  return names;
}

// Adding a benchmark touches the places that CONTRIBUTING.md names, and no others.
TEST(BenchmarkTest, IsNamedWhereContributingSays) {
  const std::vector<std::string> names = BenchmarkNames();
  ASSERT_THAT(names, ::testing::IsSupersetOf({"cosmoflow", "deepcam"}));
  std::vector<std::string> places = BenchmarkPlaces();
  for (const std::string& name : names)
    places.push_back(absl::StrCat("worker/trainer/", name, "_workload."));
  std::vector<std::string> problems;
  for (const Source& source : Sources({"common", "server", "worker", "cli"})) {
    const auto is_of = [&source](const std::string& place) {
      return absl::StartsWith(source.path, place);
    };
    if (std::any_of(places.begin(), places.end(), is_of)) continue;
    for (const std::string& line : source.lines) {
      const std::string code = absl::AsciiStrToLower(line.substr(0, line.find("//")));
      for (const std::string& name : names)
        if (absl::StrContains(code, name))
          problems.push_back(absl::StrCat(source.path, ": ", line));
    }
  }

  EXPECT_THAT(problems, IsEmpty()) << "move it to a place of CONTRIBUTING.md, \"Add a benchmark\"";
}

// The parameters of a benchmark's model and data mean nothing to the coordinator, the agent, the
// API and its clients.
TEST(BenchmarkTest, ParametersAreOpaqueOutsideOfTheTrainer) {
  const std::vector<std::string> parameters = {"cube_edge", "kernel_size", "base_filter",
                                               "map_height", "middle_block_count"};
  std::vector<std::string> problems;
  for (const Source& source : Sources(
           {"server", "proto", "worker/agent", "common/client", "common/rpc", "common/rules"})) {
    if (source.path == "server/store/former_members.h") continue;
    for (const std::string& line : source.lines) {
      const std::string code = line.substr(0, line.find("//"));
      for (const std::string& parameter : parameters)
        if (absl::StrContains(code, parameter) && !absl::StrContains(code, "reserved"))
          problems.push_back(absl::StrCat(source.path, ": ", line));
    }
  }

  EXPECT_THAT(problems, IsEmpty());
}

TEST(FileTest, NothingIsLeftUnfinished) {
  // Assembled here so that this file does not find itself.
  const std::vector<std::string> words = {absl::StrCat("FIX", "ME"), absl::StrCat("XX", "X"),
                                          absl::StrCat("DIS", "ABLED_"), absl::StrCat("TO", "DO:")};
  std::vector<std::string> problems;
  for (const Source& source : Sources(kTopFolders)) {
    for (size_t i = 0; i < source.lines.size(); ++i) {
      for (const std::string& word : words) {
        if (absl::StrContains(source.lines[i], word) &&
            !absl::StrContains(source.lines[i], "XXXXXX"))
          problems.push_back(absl::StrCat(source.path, ":", i + 1, ": ", word));
      }
    }
  }

  EXPECT_THAT(problems, IsEmpty());
}

}  // namespace
}  // namespace assay
