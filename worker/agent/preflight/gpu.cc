#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/printable.h"
#include "common/status.h"
#include "worker/agent/preflight/ask.h"
#include "worker/agent/preflight/check.h"

namespace assay::agent {
namespace {

constexpr char kName[] = "gpu";
// Of a GPU that nobody uses the driver itself takes some hundred MiB at most.
constexpr int64_t kUsedMiBMax = 1024;
constexpr size_t kWordsMax = 300;
constexpr size_t kProblemBytesMax = 3000;

// Fields of nvidia-smi.
constexpr char kEccNow[] = "ecc.errors.uncorrected.volatile.total";
constexpr char kEccEver[] = "ecc.errors.uncorrected.aggregate.total";
constexpr char kRetiredPending[] = "retired_pages.pending";
constexpr char kRemapPending[] = "remapped_rows.pending";
constexpr char kRemapFailure[] = "remapped_rows.failure";
constexpr char kLanes[] = "pcie.link.width.current";
constexpr char kLanesMax[] = "pcie.link.width.max";
constexpr char kUsedMiB[] = "memory.used";
// What holds the clocks down, below one of two prefixes: drivers before 535 know the second alone.
constexpr char kReasons[] = "clocks_event_reasons.";
constexpr char kOldReasons[] = "clocks_throttle_reasons.";
constexpr const char* kSlowdowns[] = {"hw_slowdown", "hw_thermal_slowdown",
                                      "hw_power_brake_slowdown", "sw_thermal_slowdown"};

// What nvidia-smi says of one thing, by field.
using Row = std::map<std::string, std::string>;

std::string Cell(const Row& row, const std::string& field) {
  const auto it = row.find(field);
  return it == row.end() ? "" : it->second;
}

// "[N/A]", "[Not Supported]", "N/A".
bool IsSaid(const std::string& cell) {
  return !cell.empty() && cell.front() != '[' && cell != "N/A";
}

std::optional<int64_t> Number(const std::string& cell) {
  int64_t number = 0;
  return absl::SimpleAtoi(cell, &number) ? std::optional(number) : std::nullopt;
}

// "Yes", or a number above 0: drivers differ.
bool IsYes(const std::string& cell) {
  return cell == "Yes" || Number(cell).value_or(0) > 0;
}

// nvidia-smi, asked several times within one patience.
class Smi {
 public:
  Smi(std::string program, absl::Duration patience)
      : program_(std::move(program)), end_(clock_.Mono() + patience) {}

  // The rows of `--query-KIND=FIELDS`. Fields of which the driver does not know are in unsaid() and
  // in no row. DEADLINE_EXCEEDED if it had to be ended, UNAVAILABLE with its words if it fails.
  absl::StatusOr<std::vector<Row>> Query(const std::string& kind, std::vector<std::string> fields);

  const std::set<std::string>& unsaid() const { return unsaid_; }
  const std::vector<std::string>& remarks() const { return remarks_; }  // lines that are no rows

 private:
  std::vector<Row> Rows(const std::vector<std::string>& fields, const std::string& text);
  void Leave(const std::string& unknown, std::vector<std::string>* fields);

  const RealClock clock_;
  const std::string program_;
  const MonoTime end_;
  std::set<std::string> unsaid_;
  std::vector<std::string> remarks_;
};

// Of the fields the one that nvidia-smi refuses: Field "power" is not a valid field to query.
std::optional<std::string> RefusedField(const std::string& text,
                                        const std::vector<std::string>& fields) {
  if (!absl::StrContains(text, "not a valid field")) return std::nullopt;
  for (const std::string& field : fields)
    if (absl::StrContains(text, absl::StrCat("\"", field, "\""))) return field;
  return std::nullopt;
}

void Smi::Leave(const std::string& unknown, std::vector<std::string>* fields) {
  if (!absl::StartsWith(unknown, kReasons)) {
    unsaid_.insert(unknown);
    fields->erase(std::find(fields->begin(), fields->end(), unknown));
    return;
  }
  for (std::string& field : *fields)
    if (absl::StartsWith(field, kReasons))
      field = absl::StrCat(kOldReasons, absl::StripPrefix(field, kReasons));
}

std::vector<Row> Smi::Rows(const std::vector<std::string>& fields, const std::string& text) {
  std::vector<Row> rows;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (cells.size() != fields.size()) {
      remarks_.push_back(Printable(absl::StripAsciiWhitespace(line)).substr(0, kWordsMax));
      continue;
    }
    Row& row = rows.emplace_back();
    for (size_t i = 0; i < cells.size(); ++i)
      row[fields[i]] = Printable(absl::StripAsciiWhitespace(cells[i]));
  }
  return rows;
}

absl::StatusOr<std::vector<Row>> Smi::Query(const std::string& kind,
                                            std::vector<std::string> fields) {
  while (!fields.empty()) {
    ASSIGN_OR_RETURN(const Answer answer,
                     Ask({program_, absl::StrCat("--query-", kind, "=", absl::StrJoin(fields, ",")),
                          "--format=csv,noheader,nounits"},
                         {}, end_ - clock_.Mono()));
    const std::optional<std::string> refused = RefusedField(answer.text, fields);
    if (refused.has_value()) {
      Leave(*refused, &fields);
    } else if (answer.exit_code != 0) {
      return absl::UnavailableError(absl::StrCat("nvidia-smi ended with ", answer.exit_code, ": ",
                                                 Printable(answer.text).substr(0, kWordsMax)));
    } else {
      return Rows(fields, answer.text);
    }
  }
  return absl::UnavailableError(absl::StrCat("nvidia-smi knows nothing of ", kind));
}

std::vector<std::string> GpuFields() {
  std::vector<std::string> fields{"index", "uuid",    "name",          kEccNow,  kEccEver,
                                  kLanes,  kLanesMax, kRetiredPending, kUsedMiB, "memory.total"};
  for (const char* const slowdown : kSlowdowns)
    fields.push_back(absl::StrCat(kReasons, slowdown));
  return fields;
}

// What is known of the node's GPUs.
struct Gpus {
  std::vector<Row> gpus;                              // with what is said of their remapped rows
  std::map<std::string, std::vector<Row>> processes;  // that compute, by the GPU's uuid
  std::set<std::string> unsaid;
  std::vector<std::string> remarks;
};

// An error: nothing can be said. Of less than all an old driver may not know.
absl::StatusOr<Gpus> ReadGpus(const std::string& program, absl::Duration patience) {
  Smi smi(program, patience);
  Gpus found;
  ASSIGN_OR_RETURN(found.gpus, smi.Query("gpu", GpuFields()));
  const auto ask = [&smi, &found](
                       const std::string& kind,
                       const std::vector<std::string>& fields) -> absl::StatusOr<std::vector<Row>> {
    absl::StatusOr<std::vector<Row>> rows = smi.Query(kind, fields);
    if (rows.ok() || absl::IsDeadlineExceeded(rows.status())) return rows;
    found.unsaid.insert(kind);
    return std::vector<Row>{};
  };
  ASSIGN_OR_RETURN(const std::vector<Row> remaps,
                   ask("remapped-rows", {"gpu_uuid", kRemapPending, kRemapFailure}));
  ASSIGN_OR_RETURN(std::vector<Row> processes,
                   ask("compute-apps", {"gpu_uuid", "pid", "process_name", "used_memory"}));
  for (Row& process : processes)
    found.processes[Cell(process, "gpu_uuid")].push_back(std::move(process));
  for (Row& gpu : found.gpus)
    for (const Row& remap : remaps)
      if (Cell(remap, "gpu_uuid") == Cell(gpu, "uuid")) gpu.insert(remap.begin(), remap.end());
  found.unsaid.insert(smi.unsaid().begin(), smi.unsaid().end());
  for (const Row& gpu : found.gpus)
    for (const auto& [field, cell] : gpu)
      if (!IsSaid(cell)) found.unsaid.insert(field);
  found.remarks = smi.remarks();
  return found;
}

std::string ProblemOfUse(const Row& gpu, const std::vector<Row>& processes) {
  std::vector<std::string> users;
  for (const Row& process : processes) {
    const std::string memory = Cell(process, "used_memory");
    users.push_back(absl::StrCat("process ", Cell(process, "pid"), " (",
                                 Cell(process, "process_name"), ")",
                                 IsSaid(memory) ? absl::StrCat(" with ", memory, " MiB") : ""));
  }
  if (!users.empty()) return absl::StrCat("is used by ", absl::StrJoin(users, ", "));
  const int64_t used_mib = Number(Cell(gpu, kUsedMiB)).value_or(0);
  if (used_mib <= kUsedMiBMax) return "";
  return absl::StrCat(used_mib, " of ", Cell(gpu, "memory.total"),
                      " MiB are in use by nobody who is seen");
}

// What speaks against the GPU; empty: nothing.
std::vector<std::string> ProblemsOf(const Row& gpu, const std::vector<Row>& processes) {
  std::vector<std::string> problems;
  for (const auto& [field, cell] : gpu) {
    if (!absl::StrContains(cell, "requires reset") && !absl::StrContains(cell, "is lost")) continue;
    problems.push_back(absl::StrCat("the driver says ", cell));
    break;
  }
  if (const int64_t errors = Number(Cell(gpu, kEccNow)).value_or(0); errors > 0)
    problems.push_back(absl::StrCat(errors, " uncorrected ECC errors since the driver was loaded"));
  if (IsYes(Cell(gpu, kRetiredPending)))
    problems.emplace_back("pages of its memory wait for a reset to be retired");
  if (IsYes(Cell(gpu, kRemapPending)))
    problems.emplace_back("rows of its memory wait for a reset to be remapped");
  if (IsYes(Cell(gpu, kRemapFailure)))
    problems.emplace_back("rows of its memory could not be remapped");
  std::vector<std::string> reasons;
  for (const char* const slowdown : kSlowdowns)
    for (const char* const prefix : {kReasons, kOldReasons})
      if (Cell(gpu, absl::StrCat(prefix, slowdown)) == "Active") reasons.emplace_back(slowdown);
  if (!reasons.empty())
    problems.push_back(absl::StrCat("its clocks are held down: ", absl::StrJoin(reasons, ", ")));
  const int64_t lanes = Number(Cell(gpu, kLanes)).value_or(0);
  const int64_t lanes_max = Number(Cell(gpu, kLanesMax)).value_or(0);
  if (lanes > 0 && lanes < lanes_max)
    problems.push_back(absl::StrCat("has ", lanes, " of ", lanes_max, " PCIe lanes"));
  if (std::string use = ProblemOfUse(gpu, processes); !use.empty())
    problems.push_back(std::move(use));
  return problems;
}

std::string Describe(const Gpus& found) {
  std::map<std::string, int> models;
  int64_t errors = 0;
  for (const Row& gpu : found.gpus) {
    ++models[Cell(gpu, "name")];
    errors += Number(Cell(gpu, kEccEver)).value_or(0);
  }
  std::string text =
      absl::StrCat("of ", absl::StrJoin(models, ", ", [](std::string* out, const auto& model) {
                     absl::StrAppend(out, model.second, " x ", model.first);
                   }));
  if (errors > 0) absl::StrAppend(&text, "; ", errors, " uncorrected ECC errors ever");
  if (!found.unsaid.empty())
    absl::StrAppend(&text, "; the driver does not tell ", absl::StrJoin(found.unsaid, ", "));
  if (!found.remarks.empty()) absl::StrAppend(&text, "; nvidia-smi says: ", found.remarks.front());
  return text;
}

// Those which `trainer_environment` leaves to the trainer: others may use the rest of the node. By
// number or the beginning of the uuid; all, if it says nothing that is understood.
void KeepOwn(const CheckOptions& options, std::vector<Row>* gpus) {
  constexpr absl::string_view kVariable = "CUDA_VISIBLE_DEVICES=";
  std::vector<Row> own;
  for (const std::string& variable : options.trainer_environment) {
    if (!absl::StartsWith(variable, kVariable)) continue;
    for (const absl::string_view wanted :
         absl::StrSplit(variable.substr(kVariable.size()), ',', absl::SkipWhitespace()))
      for (const Row& gpu : *gpus)
        if (Cell(gpu, "index") == wanted ||
            (absl::StartsWith(wanted, "GPU-") && absl::StartsWith(Cell(gpu, "uuid"), wanted)))
          own.push_back(gpu);
  }
  if (!own.empty()) *gpus = std::move(own);
}

std::string FindNvidiaSmi() {
  const char* const path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (const absl::string_view folder : absl::StrSplit(folders, ':', absl::SkipEmpty())) {
    std::string file = JoinPath(std::string(folder), "nvidia-smi");
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// nvidia0, the driver's file of a GPU; empty if there is none.
std::string FindDevice(const std::string& directory) {
  for (const std::string& name : ListDirectory(directory).value_or(std::vector<std::string>{})) {
    const absl::string_view rest = absl::StripPrefix(name, "nvidia");
    if (rest.size() < name.size() && Number(std::string(rest)).has_value())
      return JoinPath(directory, name);
  }
  return "";
}

}  // namespace

CheckResult CheckGpu(const CheckOptions& options) {
  const std::string device = FindDevice(options.device_directory);
  const std::string program = options.gpu_program.empty() ? FindNvidiaSmi() : options.gpu_program;
  if (program.empty() && device.empty()) return NotMeasured(kName, "this node has no GPU");
  if (program.empty())
    return NotMeasured(
        kName, absl::StrCat("there is ", device, ", but no nvidia-smi in PATH to ask: install it"));
  absl::StatusOr<Gpus> found = ReadGpus(program, options.patience);
  CheckResult result{.check = kName, .unit = "GPUs"};
  if (absl::IsDeadlineExceeded(found.status())) {
    result.problem =
        absl::StrCat("nvidia-smi has not answered within ", absl::FormatDuration(options.patience));
    return result;
  }
  if (!found.ok() || found->gpus.empty()) {
    const std::string why(found.ok() ? "nvidia-smi finds no GPU" : found.status().message());
    if (device.empty()) return NotMeasured(kName, absl::StrCat("this node has no GPU: ", why));
    result.problem = absl::StrCat("there is ", device, ", but ", why);
    return result;
  }
  KeepOwn(options, &found->gpus);
  std::vector<std::string> problems;
  for (const Row& gpu : found->gpus) {
    const std::vector<std::string> of_gpu = ProblemsOf(gpu, found->processes[Cell(gpu, "uuid")]);
    if (of_gpu.empty()) {
      ++result.value;
      continue;
    }
    problems.push_back(absl::StrCat("GPU ", Cell(gpu, "index"), ": ", absl::StrJoin(of_gpu, ", ")));
  }
  result.is_measured = true;
  result.detail = Describe(*found);
  result.problem = absl::StrJoin(problems, "; ").substr(0, kProblemBytesMax);
  return result;
}

}  // namespace assay::agent
