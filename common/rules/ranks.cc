#include "common/rules/ranks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/benchmark_settings.h"

namespace assay::rules {
namespace {

constexpr int64_t kPartsMax = 64;
constexpr char kGridSection[] = "Assay, ranks that share samples";
constexpr char kBatchSection[] = "Assay, ranks";
constexpr char kDeviceSection[] = "Assay, GPUs";
constexpr char kBackendKey[] = "backend";
constexpr char kBackendSection[] = "Assay, backends";
constexpr char kMemorySection[] = "Assay, memory";
constexpr char kDeviceBackends[] = "cuda";  // how their names begin

constexpr TextRule kRankRules[] = {
    {"R-RNK-001", kSpatialGridKey, "two whole numbers from 1 to 64: parts along depth and height",
     kGridSection, "write it as spatial_grid = [2, 2], or leave it out"},
    {"R-RNK-002", kSpatialGridKey, "a benchmark whose samples can be divided", kGridSection,
     "leave spatial_grid out: each rank has whole samples"},
    {"R-RNK-003", kSpatialGridKey,
     "blocks whose edges are multiples of the smallest block of the model", kGridSection,
     "divide each edge into fewer parts"},
    {"R-RNK-004", kSpatialGridKey, "a number of ranks that is a multiple of the group's",
     kGridSection, "change nodes, ranks_per_node or the parts"},
    {"R-RNK-005", kSpatialGridKey,
     "a group size that divides the ranks per node, or is a multiple of it", kGridSection,
     "choose parts and ranks_per_node of which one divides the other"},
    {"R-RNK-006", kGlobalBatchKey,
     "a positive multiple of the number of ranks, or of groups that share samples", kBatchSection,
     "choose such a multiple, or another number of ranks"},
    {"R-RNK-007", kGradientBucketKey, "a whole number from 0 to 4096 (MiB)", kDeviceSection,
     "write 0 to average all gradients at once, or leave it out"},
    {"R-RNK-008", kDeviceCacheKey, "a whole number from 0 to 16777216 (MiB)", kDeviceSection,
     "write how much of each GPU's memory samples may take, or leave it out"},
    {"R-RNK-009", kDeviceCacheKey, "a backend with memory of its own: cuda, cuda-tf32, cuda-bf16",
     kDeviceSection,
     "leave device_cache_mib out: the file system keeps files in the host's memory"},
    {"R-RNK-010", kBackendKey, "a backend that runs the benchmark", kBackendSection,
     "leave backend out: nodes take the best that they have"},
    {"R-RNK-011", kMemoryLimitKey, "a whole number from 0 to 16777216 (MiB)", kMemorySection,
     "write what a rank's training may take, or leave it out: then nothing is recomputed"},
};

// A violation of the rule `id`, with a remedy that knows the numbers where there is one.
Finding Unfit(absl::string_view id, std::string found, std::string remedy = "") {
  const TextRule& rule = FindRule(kRankRules, id);
  Finding finding = Violation(rule, absl::StrCat("ranks:", rule.key), std::move(found));
  if (!remedy.empty()) finding.remedy = std::move(remedy);
  return finding;
}

std::optional<int64_t> PartsOf(const JsonValue& value) {
  const std::optional<double> number = value.ToDouble();
  const bool is_count = number && !value.AsBool() && *number >= 1 &&
                        *number <= static_cast<double>(kPartsMax) && *number == std::floor(*number);
  if (!is_count) return std::nullopt;
  return static_cast<int64_t>(*number);
}

// "divide each edge into 1, 2 or 4 parts": all that an edge of so many voxels allows.
std::string PartsRemedy(int64_t edge, int64_t unit) {
  std::vector<int64_t> parts;
  for (int64_t count = 1; count <= kPartsMax; ++count)
    if (edge % (unit * count) == 0) parts.push_back(count);
  if (parts.size() <= 1)
    return absl::StrCat("leave spatial_grid out: an edge of ", edge,
                        " voxels cannot be divided, only one of ", 2 * unit, ", ", 3 * unit, ", ",
                        4 * unit, " ... can");
  return absl::StrCat("of an edge of ", edge, " voxels make ", absl::StrJoin(parts, " or "),
                      " parts");
}

// 0: not known, so not judged.
int64_t EdgeOf(const Hyperparameters& values, const BenchmarkSettings& benchmark) {
  const auto given = values.find(benchmark.shared_edge);
  return given == values.end() ? 0 : given->second.AsInt64().value_or(0);
}

int64_t RanksOf(const RankLayout& layout) {
  return std::max<int64_t>(layout.nodes, 1) * std::max<int64_t>(layout.ranks_per_node, 1);
}

Finding Indivisible(const JsonValue& value, const RankLayout& layout) {
  Finding finding = Unfit("R-RNK-002", absl::StrCat(DumpJson(value), " for ", layout.benchmark));
  std::vector<absl::string_view> names;
  for (const BenchmarkSettings& row : AllBenchmarkSettings())
    if (row.IsDivisible()) names.push_back(row.benchmark);
  absl::StrAppend(&finding.expected, ": ", absl::StrJoin(names, ", "));
  return finding;
}

Finding Misdivided(const JsonValue& value, int64_t edge, int64_t unit) {
  Finding finding = Unfit("R-RNK-003", absl::StrCat(DumpJson(value), " of cubes of ", edge),
                          PartsRemedy(edge, unit));
  finding.expected = absl::StrCat("blocks whose edges are multiples of ", unit, " voxels");
  return finding;
}

std::vector<Finding> CheckGrid(const JsonValue& value, const GridParts& parts,
                               const Hyperparameters& values, const RankLayout& layout) {
  const int64_t size = parts.depth * parts.height;
  const int64_t per_node = std::max<int64_t>(layout.ranks_per_node, 1);
  if (size == 1) return {};
  const BenchmarkSettings* const benchmark = FindBenchmarkSettings(layout.benchmark);
  if (benchmark == nullptr || !benchmark->IsDivisible()) return {Indivisible(value, layout)};
  std::vector<Finding> findings;
  if (RanksOf(layout) % size != 0) {
    findings.push_back(Unfit(
        "R-RNK-004",
        absl::StrCat(DumpJson(value), ", groups of ", size, " for ", RanksOf(layout), " ranks"),
        absl::StrCat("ask for nodes times ranks_per_node = ", size, ", ", 2 * size, ", ", 3 * size,
                     " ..., or change the parts")));
  } else if (size % per_node != 0 && per_node % size != 0) {
    findings.push_back(Unfit("R-RNK-005", absl::StrCat(DumpJson(value), ", groups of ", size,
                                                       " ranks on nodes of ", per_node)));
  }
  const int64_t edge = EdgeOf(values, *benchmark);
  const int64_t unit = benchmark->block_unit;
  const bool is_divided = edge % (unit * parts.depth) == 0 && edge % (unit * parts.height) == 0;
  if (edge > 0 && !is_divided) findings.push_back(Misdivided(value, edge, unit));
  return findings;
}

std::optional<Finding> CheckBatch(const JsonValue& value, int64_t group_size,
                                  const RankLayout& layout) {
  const int64_t groups = RanksOf(layout) / group_size;
  const std::optional<int64_t> batch = value.AsInt64();
  if (batch && *batch > 0 && *batch % groups == 0) return std::nullopt;
  return Unfit("R-RNK-006",
               absl::StrCat(DumpJson(value), " for ", groups,
                            group_size > 1 ? " groups that share samples" : " ranks"),
               absl::StrCat("choose a multiple of ", groups, ", or another number of ranks"));
}

// A size in MiB that is given as a whole number from 0 to `most`; 0 if it is left out.
std::optional<int64_t> ReadMebibytes(const Hyperparameters& values, const char* key, int64_t most) {
  const auto found = values.find(key);
  if (found == values.end()) return 0;
  const std::optional<int64_t> size = found->second.AsInt64();
  return size && *size >= 0 && *size <= most ? size : std::nullopt;
}

std::vector<Finding> CheckDevices(const Hyperparameters& values, const RankLayout& layout) {
  std::vector<Finding> findings;
  if (!ReadMebibytes(values, kGradientBucketKey, kGradientBucketMibMax))
    findings.push_back(Unfit("R-RNK-007", DumpJson(values.at(kGradientBucketKey))));
  if (!ReadMebibytes(values, kMemoryLimitKey, kMemoryLimitMibMax))
    findings.push_back(Unfit("R-RNK-011", DumpJson(values.at(kMemoryLimitKey))));
  const std::optional<int64_t> cache = ReadMebibytes(values, kDeviceCacheKey, kDeviceCacheMibMax);
  if (!cache) {
    findings.push_back(Unfit("R-RNK-008", DumpJson(values.at(kDeviceCacheKey))));
  } else if (*cache > 0 && !layout.backend.empty() &&
             !absl::StartsWith(layout.backend, kDeviceBackends)) {
    findings.push_back(Unfit("R-RNK-009", absl::StrCat(*cache, " on backend ", layout.backend)));
  }
  return findings;
}

std::optional<Finding> CheckBackend(const RankLayout& layout) {
  const BenchmarkSettings* const benchmark = FindBenchmarkSettings(layout.benchmark);
  if (benchmark == nullptr) return std::nullopt;
  for (const ExcludedBackend& backend : benchmark->excluded_backends)
    if (backend.name == layout.backend)
      return Unfit("R-RNK-010", absl::StrCat(layout.backend, " for ", layout.benchmark),
                   backend.remedy);
  return std::nullopt;
}

std::vector<Finding> CheckWork(const Hyperparameters& values, const RankLayout& layout) {
  GridParts parts;
  if (const auto grid = values.find(kSpatialGridKey); grid != values.end()) {
    const std::optional<GridParts> read = ReadSpatialGrid(grid->second);
    if (!read) return {Unfit("R-RNK-001", DumpJson(grid->second))};
    parts = *read;
    // The batch can only be judged once the groups are known.
    std::vector<Finding> findings = CheckGrid(grid->second, parts, values, layout);
    if (!findings.empty()) return findings;
  }
  const auto batch = values.find(kGlobalBatchKey);
  if (batch == values.end()) return {};
  std::optional<Finding> finding = CheckBatch(batch->second, parts.depth * parts.height, layout);
  if (!finding) return {};
  return {*std::move(finding)};
}

}  // namespace

std::span<const TextRule> RankRules() {
  return kRankRules;
}

std::optional<GridParts> ReadSpatialGrid(const JsonValue& value) {
  const JsonList* const list = value.AsList();
  if (list == nullptr || list->size() != 2) return std::nullopt;
  const std::optional<int64_t> depth = PartsOf((*list)[0]);
  const std::optional<int64_t> height = PartsOf((*list)[1]);
  if (!depth || !height) return std::nullopt;
  return GridParts{*depth, *height};
}

std::vector<Finding> CheckRanks(const Hyperparameters& values, const RankLayout& layout) {
  std::vector<Finding> findings = CheckWork(values, layout);
  for (Finding& finding : CheckDevices(values, layout))
    findings.push_back(std::move(finding));
  if (std::optional<Finding> finding = CheckBackend(layout))
    findings.push_back(*std::move(finding));
  return findings;
}

}  // namespace assay::rules
