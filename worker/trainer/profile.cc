#include "worker/trainer/profile.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/status.h"
#include "worker/comm/ring.h"
#include "worker/engine/peak_rate.h"

namespace assay {
namespace {

constexpr double kGiga = 1e9;
constexpr double kNano = 1e-9;
constexpr size_t kStagingNodesMax = 16;  // of which a record has figures

static_assert(std::is_trivially_copyable_v<ProfileCounts>);

// Sum, mean and largest of one count over the ranks.
class OverRanks {
 public:
  explicit OverRanks(std::span<const ProfileCounts> ranks) : ranks_(ranks) {}

  template <typename T>
  T Sum(T ProfileCounts::*count) const {
    T sum = 0;
    for (const ProfileCounts& rank : ranks_)
      sum += rank.*count;
    return sum;
  }
  double Mean(double ProfileCounts::*count) const {
    return Sum(count) / static_cast<double>(ranks_.size());
  }
  template <typename T>
  T Largest(T ProfileCounts::*count) const {
    T largest = 0;
    for (const ProfileCounts& rank : ranks_)
      largest = std::max(largest, rank.*count);
    return largest;
  }

 private:
  const std::span<const ProfileCounts> ranks_;
};

// Training's arithmetic and its traffic through memory against what the machine can do of each;
// whichever takes longer is the roof (Williams, Waterman, Patterson, "Roofline", 2009).
void AddRoofline(std::span<const ProfileCounts> ranks, double train_s, JsonObject* record) {
  const OverRanks all(ranks);
  const double memory = all.Sum(&ProfileCounts::peak_bytes_per_s);
  if (memory <= 0) return;
  const double bytes = all.Sum(&ProfileCounts::train_bytes);
  const double arithmetic_s =
      all.Sum(&ProfileCounts::train_flops) / all.Sum(&ProfileCounts::peak_flops_per_s);
  const double roof_s = std::max(arithmetic_s, bytes / memory);
  record->emplace_back("train_gbyte", bytes / kGiga);
  record->emplace_back("eval_gbyte", all.Sum(&ProfileCounts::eval_bytes) / kGiga);
  record->emplace_back("memory_gbyte_per_s", memory / kGiga);
  record->emplace_back("roofline_s", roof_s);
  record->emplace_back("roofline_limit", arithmetic_s >= roof_s ? "arithmetic" : "memory");
  if (train_s > 0) record->emplace_back("roofline_share", roof_s / train_s);
}

void AddArithmetic(const ProfileHead& head, std::span<const ProfileCounts> ranks,
                   JsonObject* record) {
  const OverRanks all(ranks);
  const double train = all.Sum(&ProfileCounts::train_flops) / kGiga;
  const double eval = all.Sum(&ProfileCounts::eval_flops) / kGiga;
  const double train_s = all.Mean(&ProfileCounts::train_s);
  const double eval_s = all.Mean(&ProfileCounts::eval_s);
  record->emplace_back("train_samples",
                       all.Sum(&ProfileCounts::train_samples) / head.ranks_per_sample);
  record->emplace_back("eval_samples",
                       all.Sum(&ProfileCounts::eval_samples) / head.ranks_per_sample);
  record->emplace_back("train_s", train_s);
  record->emplace_back("eval_s", eval_s);
  record->emplace_back("train_gflop", train);
  record->emplace_back("eval_gflop", eval);
  const double rate = train_s > 0 ? train / train_s : 0;
  if (train_s > 0) record->emplace_back("train_gflop_per_s", rate);
  if (eval_s > 0) record->emplace_back("eval_gflop_per_s", eval / eval_s);
  const bool is_peak_known = std::all_of(
      ranks.begin(), ranks.end(), [](const ProfileCounts& r) { return r.peak_flops_per_s > 0; });
  if (!is_peak_known) {
    record->emplace_back("peak_source", "not known");
    return;
  }
  const double peak = all.Sum(&ProfileCounts::peak_flops_per_s) / kGiga;
  record->emplace_back("peak_gflop_per_s", peak);
  record->emplace_back("peak_source",
                       absl::StrCat("measured before the clock: fp32 multiply-adds on ",
                                    all.Sum(&ProfileCounts::peak_threads), " threads"));
  record->emplace_back("peak_share", rate / peak);
  AddRoofline(ranks, train_s, record);
}

void AddInput(std::span<const ProfileCounts> ranks, JsonObject* record) {
  const OverRanks all(ranks);
  record->emplace_back("input_wait_s", all.Mean(&ProfileCounts::input_wait_s));
  record->emplace_back("input_wait_max_s", all.Largest(&ProfileCounts::input_wait_s));
  record->emplace_back("input_copy_s", all.Mean(&ProfileCounts::input_copy_s));
  if (const int64_t cached = all.Sum(&ProfileCounts::cached_samples); cached > 0)
    record->emplace_back("cached_samples", cached);
  record->emplace_back("read_bytes", all.Sum(&ProfileCounts::read_bytes));
  record->emplace_back("staged_bytes", all.Sum(&ProfileCounts::staged_bytes));
  record->emplace_back("memory_peak_bytes", all.Largest(&ProfileCounts::memory_peak_bytes));
  record->emplace_back("memory_peak_sum_bytes", all.Sum(&ProfileCounts::memory_peak_bytes));
}

// The ranks of a node stage side by side: its rate is that of their bytes by the time of the last.
JsonObject StagingOfNode(int64_t node, std::span<const ProfileCounts> ranks) {
  const OverRanks all(ranks);
  const int64_t bytes = all.Sum(&ProfileCounts::staged_bytes);
  const double seconds = all.Largest(&ProfileCounts::staged_s);
  return {{"node", node},
          {"bytes", bytes},
          {"bytes_per_s", seconds > 0 ? static_cast<double>(bytes) / seconds : 0},
          {"file_p99_s", all.Largest(&ProfileCounts::staged_file_p99_s)},
          {"retries", all.Sum(&ProfileCounts::staged_retries)}};
}

// The slowest nodes, slowest first: what the run has waited for.
void AddStaging(const ProfileHead& head, std::span<const ProfileCounts> ranks, JsonObject* record) {
  if (OverRanks(ranks).Sum(&ProfileCounts::staged_bytes) == 0) return;
  const size_t ranks_per_node = static_cast<size_t>(std::max(head.ranks_per_node, 1));
  std::vector<std::pair<double, size_t>> nodes;  // the time, and the first rank
  for (size_t first = 0; first < ranks.size(); first += ranks_per_node) {
    const size_t count = std::min(ranks_per_node, ranks.size() - first);
    nodes.emplace_back(OverRanks(ranks.subspan(first, count)).Largest(&ProfileCounts::staged_s),
                       first);
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  JsonList list;
  for (const auto& [seconds, first] : nodes) {
    if (list.size() == kStagingNodesMax) break;
    list.emplace_back(
        StagingOfNode(static_cast<int64_t>(first / ranks_per_node),
                      ranks.subspan(first, std::min(ranks_per_node, ranks.size() - first))));
  }
  record->emplace_back("staging", std::move(list));
}

// Operations are the same on all ranks but for exchanges between neighbours; the largest count
// stands for all.
comm::OperationCounts OverAll(std::span<const ProfileCounts> ranks, size_t size_class) {
  comm::OperationCounts all;
  for (const ProfileCounts& rank : ranks) {
    const comm::OperationCounts& counts = rank.traffic.by_size[size_class];
    all.operations = std::max(all.operations, counts.operations);
    all.bytes += counts.bytes;
    all.sent_bytes += counts.sent_bytes;
    all.ns += counts.ns;
  }
  return all;
}

// Every rank takes part in each average; neighbours at the border have fewer messages.
void AddDeviceCollectives(std::span<const ProfileCounts> ranks, JsonObject* record) {
  AverageCounts averages;
  RankTraffic traffic;
  for (const ProfileCounts& rank : ranks) {
    averages.averages = std::max(averages.averages, rank.device_averages.averages);
    averages.bytes += rank.device_averages.bytes;
    averages.overlapped_bytes += rank.device_averages.overlapped_bytes;
    traffic.exchanges = std::max(traffic.exchanges, rank.device_traffic.exchanges);
    traffic.bytes += rank.device_traffic.bytes;
  }
  if (averages.averages > 0) {
    record->emplace_back("device_averages", averages.averages);
    record->emplace_back("device_average_bytes", averages.bytes);
    record->emplace_back("device_average_overlapped_bytes", averages.overlapped_bytes);
  }
  if (traffic.exchanges > 0) {
    record->emplace_back("device_exchanges", traffic.exchanges);
    record->emplace_back("device_exchange_bytes", traffic.bytes);
  }
}

void AddCollectives(std::span<const ProfileCounts> ranks, JsonObject* record) {
  const auto mean_s = [&ranks](int64_t ns) {
    return kNano * static_cast<double>(ns) / static_cast<double>(ranks.size());
  };
  JsonList classes;
  int64_t ns = 0, waiting_ns = 0;
  for (const ProfileCounts& rank : ranks)
    waiting_ns += rank.traffic.waiting_ns;
  for (size_t i = 0; i < comm::kSizeClassCount; ++i) {
    const comm::OperationCounts counts = OverAll(ranks, i);
    ns += counts.ns;
    if (counts.operations == 0 && counts.sent_bytes == 0) continue;
    classes.emplace_back(JsonObject{{"size", comm::SizeClassName(i)},
                                    {"operations", counts.operations},
                                    {"bytes", counts.bytes},
                                    {"sent_bytes", counts.sent_bytes},
                                    {"exposed_s", mean_s(counts.ns)}});
  }
  record->emplace_back("collective_exposed_s", mean_s(ns));
  // The host takes part in its collectives and computes nothing meanwhile.
  record->emplace_back("collective_overlapped_s", 0.0);
  record->emplace_back("collective_wait_s", mean_s(waiting_ns));
  AddDeviceCollectives(ranks, record);
  record->emplace_back("collectives", std::move(classes));
}

}  // namespace

JsonObject ProfileRecord(const ProfileHead& head, std::span<const ProfileCounts> ranks) {
  JsonObject record = {{"epoch", head.epoch},
                       {"is_final", head.is_final},
                       {"ranks", static_cast<int64_t>(ranks.size())},
                       {"backend", head.backend}};
  AddArithmetic(head, ranks, &record);
  AddInput(ranks, &record);
  AddStaging(head, ranks, &record);
  AddCollectives(ranks, &record);
  return record;
}

int64_t MemoryPeakBytes() {
  constexpr int64_t kKibibyte = 1024;
  const absl::StatusOr<std::string> status = ReadFile("/proc/self/status");
  if (!status.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(*status, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t kibibytes = 0;
    if (words.size() == 3 && words[0] == "VmHWM:" && absl::SimpleAtoi(words[1], &kibibytes))
      return kKibibyte * kibibytes;
  }
  return 0;
}

void ForgetMemoryPeak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

void Profile::ProbePeak() {
  const PeakRate peak = MeasurePeakRate(clock_);
  counts_.peak_flops_per_s = peak.flops_per_s;
  counts_.peak_bytes_per_s = peak.bytes_per_s;
  counts_.peak_threads = peak.threads;
  ForgetMemoryPeak();
}

std::unique_ptr<comm::Collective> Profile::Watch(std::unique_ptr<comm::Collective> comm) {
  auto counting = std::make_unique<comm::CountingCollective>(std::move(comm), clock_);
  comm_ = counting.get();
  return counting;
}

void Profile::Staged(const data::Staged& staged) {
  counts_.staged_bytes += staged.bytes;
  counts_.staged_s += absl::ToDoubleSeconds(staged.elapsed);
  counts_.staged_file_p99_s = absl::ToDoubleSeconds(staged.file_p99);
  counts_.staged_retries += staged.retries;
}

void Profile::Trained(int64_t samples) {
  counts_.train_samples += samples;
  counts_.train_flops += work_.train_flops * static_cast<double>(samples);
  counts_.train_bytes += work_.train_bytes * static_cast<double>(samples);
}

void Profile::Evaluated(int64_t samples) {
  counts_.eval_samples += samples;
  counts_.eval_flops += work_.eval_flops * static_cast<double>(samples);
  counts_.eval_bytes += work_.eval_bytes * static_cast<double>(samples);
}

absl::StatusOr<std::vector<ProfileCounts>> Profile::Gather(MonoTime deadline) {
  counts_.memory_peak_bytes = MemoryPeakBytes();
  counts_.traffic = comm_->traffic();
  std::vector<ProfileCounts> all(static_cast<size_t>(comm_->world_size()));
  RETURN_IF_ERROR(comm::AllGather(comm_, std::as_bytes(std::span(&counts_, 1)),
                                  std::as_writable_bytes(std::span(all)), deadline));
  return all;
}

}  // namespace assay
