#include "cli/entry/workload_table.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "cli/command/ask_program.h"
#include "common/client/suggest.h"
#include "common/file.h"
#include "common/sha256.h"
#include "common/source/source_archive.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using Program = v1::CommandWorkload;

Position PlaceOf(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

// A key of the table: what it holds and where it goes. One setter of the four is there.
struct WorkloadKey {
  const char* name;
  const char* example;
  const char* help;
  void (*set_text)(Program*, const std::string&);
  void (*add_text)(Program*, const std::string&);  // an element of a list
  void (*set_number)(Program*, int64_t);
  int64_t number_max;
};

const std::vector<WorkloadKey>& WorkloadKeys() {
  static const auto* const kKeys = new std::vector<WorkloadKey>{
      {"command", R"(["python3", "${ASSAY_CODE}/train.py"])",
       "the program and its arguments, without a shell; ${ASSAY_...} is replaced. Required",
       nullptr, [](Program* p, const std::string& v) { p->add_command(v); }, nullptr, 0},
      {"launcher", "\"per-rank\"",
       "who starts ranks: per-rank (if not given), per-node, srun or mpirun",
       [](Program* p, const std::string& v) { p->set_launcher(v); }, nullptr, nullptr, 0},
      {"source", "\"train\"", "a folder beside the file, which is sent along",
       [](Program* p, const std::string&) { p->mutable_source(); }, nullptr, nullptr, 0},
      {"image", "\"/shared/images/train.sqsh\"",
       "its system, in one file (squashfs or tar) that nodes see; their own if not given",
       [](Program* p, const std::string& v) { p->mutable_image()->set_path(v); }, nullptr, nullptr,
       0},
      {"image_sha256", "\"9f86...\", as `sha256sum` says it",
       "of the image, where this host does not see it",
       [](Program* p, const std::string& v) { p->mutable_image()->set_sha256(v); }, nullptr,
       nullptr, 0},
      {"log", "\"file\"", "file: it appends to ASSAY_LOG (if not given); stdout: it prints",
       [](Program* p, const std::string& v) { p->set_log(v); }, nullptr, nullptr, 0},
      {"env", R"({ OPENBLAS_NUM_THREADS = "1" })", "variables, added to the contract's", nullptr,
       nullptr, nullptr, 0},
      {"collect", R"(["weights_*.npy"])", "files of ASSAY_OUTPUT that are kept with the run",
       nullptr, [](Program* p, const std::string& v) { p->add_collect(v); }, nullptr, 0},
      {"stop_grace_s", "10", "seconds between TERM and KILL, up to 120", nullptr, nullptr,
       [](Program* p, int64_t v) { p->set_stop_grace_s(static_cast<int32_t>(v)); }, 120},
      {"memory_mib", "4096", "what its processes may take on a node; no limit if not given",
       nullptr, nullptr, [](Program* p, int64_t v) { p->set_memory_mib(v); }, int64_t{1} << 30},
  };
  return *kKeys;
}

class TableReader {
 public:
  TableReader(Position at, SubmissionFile* file)
      : at_(at), file_(*file), program_(file->spec.mutable_command()) {}

  void Read(const toml::table& table) {
    for (const auto& [key, node] : table)
      ReadKey(std::string(key.str()), PlaceOf(key.source()), node);
    if (table.get("command") == nullptr)
      Problem(at_, "'command' is missing",
              absl::StrCat("add command = ", WorkloadKeys().front().example, " below [workload]"));
    if (file_.positions.contains("backend"))
      Problem(file_.positions["backend"], "'backend' is the native trainer's",
              "leave it out: [workload] names another program");
  }

 private:
  void Problem(Position at, std::string message, std::string remedy) {
    file_.problems.push_back(
        {.at = at, .message = std::move(message), .remedy = std::move(remedy)});
  }
  void Wrong(const WorkloadKey& key, const toml::node& node, absl::string_view kind) {
    Problem(PlaceOf(node.source()), absl::StrCat("'", key.name, "' must be ", kind),
            absl::StrCat("write it as ", key.name, " = ", key.example));
  }

  void ReadKey(const std::string& name, Position key_at, const toml::node& node) {
    for (const WorkloadKey& key : WorkloadKeys()) {
      if (name != key.name) continue;
      file_.positions[absl::StrCat("workload.", name)] = PlaceOf(node.source());
      if (key.set_text != nullptr) return ReadText(key, node);
      if (key.add_text != nullptr) return ReadList(key, node);
      if (key.set_number != nullptr) return ReadNumber(key, node);
      return ReadVariables(key, node);
    }
    std::vector<std::string> known;
    for (const WorkloadKey& key : WorkloadKeys())
      known.emplace_back(key.name);
    const std::string near = client::Suggest(name, known);
    Problem(key_at, absl::StrCat("unknown key '", name, "' of a workload"),
            near.empty() ? absl::StrCat("known keys: ", absl::StrJoin(known, ", "))
                         : absl::StrCat("write ", near));
  }

  void ReadText(const WorkloadKey& key, const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    if (!value.has_value() || value->empty()) return Wrong(key, node, "a text");
    key.set_text(program_, *value);
    if (absl::string_view(key.name) == "source") file_.source_folder = *value;
  }

  void ReadList(const WorkloadKey& key, const toml::node& node) {
    const toml::array* const list = node.as_array();
    if (list == nullptr || list->empty()) return Wrong(key, node, "a list of texts");
    for (const toml::node& element : *list) {
      const auto value = element.value_exact<std::string>();
      if (!value.has_value()) return Wrong(key, element, "a list of texts");
      key.add_text(program_, *value);
    }
  }

  void ReadNumber(const WorkloadKey& key, const toml::node& node) {
    const auto value = node.value_exact<int64_t>();
    if (!value.has_value() || *value < 1 || *value > key.number_max)
      return Wrong(key, node, absl::StrCat("a whole number from 1 to ", key.number_max));
    key.set_number(program_, *value);
  }

  void ReadVariables(const WorkloadKey& key, const toml::node& node) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) return Wrong(key, node, "a table of texts");
    for (const auto& [name, value] : *table) {
      const auto text = value.value_exact<std::string>();
      if (!text.has_value()) {
        Wrong(key, value, "a table of texts");
      } else {
        (*program_->mutable_env())[std::string(name.str())] = *text;
      }
    }
  }

  const Position at_;
  SubmissionFile& file_;
  Program* const program_;
};

// What `git ARGUMENTS` says in `folder`; nullopt if it fails, as it does outside of a repository.
std::optional<std::string> AskGit(const std::string& folder, std::vector<std::string> arguments) {
  std::vector<std::string> argv = {"git", "-C", folder};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return AskProgram(std::move(argv), {"LC_ALL=C"});
}

// True if a line of `git status` names something that is packed.
bool IsChange(absl::string_view line) {
  return !line.empty() && !absl::EndsWith(line, "__pycache__/");
}

void DescribeCommit(const std::string& folder, v1::SourceArchive* source) {
  const std::optional<std::string> commit = AskGit(folder, {"rev-parse", "--verify", "HEAD"});
  if (!commit.has_value()) return;
  source->set_git_commit(std::string(absl::StripAsciiWhitespace(*commit)));
  const std::optional<std::string> status =
      AskGit(folder, {"status", "--porcelain", "--ignored", "--untracked-files=normal", "--", "."});
  source->set_is_modified(!status.has_value());
  for (const absl::string_view line : absl::StrSplit(status.value_or(""), '\n'))
    if (IsChange(line)) source->set_is_modified(true);
}

}  // namespace

std::vector<SubmissionTable> WorkloadKeyTexts() {
  std::vector<SubmissionTable> texts;
  for (const WorkloadKey& key : WorkloadKeys())
    texts.push_back({key.name, key.example, key.help});
  return texts;
}

void ReadWorkload(const toml::table& table, Position at, SubmissionFile* file) {
  TableReader(at, file).Read(table);
}

void PackSourceOf(const std::string& directory, SubmissionFile* file) {
  if (file->source_folder.empty()) return;
  const std::string folder =
      (std::filesystem::path(directory) / file->source_folder).lexically_normal().string();
  absl::StatusOr<std::string> packed = PackSource(folder);
  if (!packed.ok()) {
    file->problems.push_back({.at = file->positions["workload.source"],
                              .message = std::string(packed.status().message()),
                              .remedy = "name a folder beside this file, with the program in it"});
    return;
  }
  file->source = *std::move(packed);
  v1::SourceArchive* const source = file->spec.mutable_command()->mutable_source();
  source->set_sha256(Sha256Hex(file->source));
  source->set_size_bytes(static_cast<int64_t>(file->source.size()));
  DescribeCommit(folder, source);
}

void FindImageOf(const Context& context, const std::string& directory, SubmissionFile* file) {
  if (!file->spec.command().has_image()) return;
  v1::ImageFile* const image = file->spec.mutable_command()->mutable_image();
  if (image->path().empty()) {
    file->problems.push_back({.at = file->positions["workload.image_sha256"],
                              .message = "'image_sha256' without 'image'",
                              .remedy = "name the file too, as image = \"/shared/train.sqsh\""});
    return;
  }
  image->set_path((std::filesystem::path(directory) / image->path()).lexically_normal().string());
  if (!image->sha256().empty()) return;
  ProgressLine progress(&context);
  progress.Draw(absl::StrCat("reading ", image->path(), " for its digest"));
  absl::StatusOr<std::string> sha256 = Sha256HexOfFile(image->path());
  progress.Clear();
  if (sha256.ok()) {
    image->set_sha256(*sha256);
  } else {
    file->problems.push_back(
        {.at = file->positions["workload.image"],
         .message = std::string(sha256.status().message()),
         .remedy = "if it lies where only nodes see it, add image_sha256 = \"...\", as "
                   "`sha256sum` says it there"});
  }
}

}  // namespace assay::cli
