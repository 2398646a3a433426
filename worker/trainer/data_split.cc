#include "worker/trainer/data_split.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/dataset/shards.h"
#include "common/file.h"
#include "common/rules/ranks.h"
#include "common/status.h"
#include "worker/data/augmentation.h"
#include "worker/data/cache_plan.h"
#include "worker/trainer/extensions.h"

namespace assay {
namespace {

constexpr int kReaderThreads = 2;
constexpr int kPrefetchDepth = 4;
constexpr int64_t kMebibyte = int64_t{1} << 20;

data::SamplerOptions SamplerFor(const TrainerSpec& spec, const DataPlan& plan,
                                dataset::Split kind) {
  const bool is_training = kind == dataset::Split::kTrain;
  const v1::DatasetSpec& dataset = spec.run.dataset();
  // Samples are dealt to groups of ranks; a group that covers several nodes is like one node.
  return {.samples = is_training ? dataset.train_sample_count() : dataset.eval_sample_count(),
          .world_size = spec.group_count(),
          .rank = spec.group(),
          .ranks_per_node = std::max(spec.run.ranks_per_node(), 1) / spec.group_ranks_per_node(),
          .local_batch = spec.local_batch_size,
          .staged = dataset.is_staged(),
          .shuffle = is_training,
          .seed = static_cast<uint64_t>(spec.run.seed()),
          .remainder = is_training ? plan.train_remainder : plan.eval_remainder};
}

// What this rank reads of a split in an epoch, in order, but for the first `skipped` samples; whole
// batches, because the reader knows no others: what fills up the last is never looked at.
std::vector<data::SampleToRead> SamplesOf(const TrainerSpec& spec, const DataSplit& split,
                                          int epoch, int64_t skipped, data::CachePlan* cache) {
  const data::Augmentation augmentation = split.kind == dataset::Split::kTrain
                                              ? spec.extensions.augmentation
                                              : data::Augmentation::kNone;
  std::vector<uint32_t> order = split.sampler->Order(epoch);
  order.erase(order.begin(), order.begin() + skipped);
  while (!order.empty() && order.size() % static_cast<size_t>(split.batch) != 0)
    order.push_back(order.back());
  std::vector<data::SampleToRead> samples;
  for (const uint32_t index : order) {
    const int symmetry = data::DrawSymmetry(augmentation, static_cast<uint64_t>(spec.run.seed()),
                                            static_cast<uint32_t>(epoch), index);
    samples.push_back({.path = JoinPath(spec.data_directory, split.files[index]),
                       .symmetry = symmetry,
                       .cache = cache->Next(index)});
  }
  return samples;
}

}  // namespace

int64_t DataSplit::distinct_samples() const {
  // Validation deals the same samples in every epoch.
  return kind == dataset::Split::kTrain ? std::ssize(sampler->NodeSamples()) : samples;
}

int64_t DataSplit::SamplesIn(int64_t step) const {
  return std::min<int64_t>(batch, samples - step * batch);
}

absl::StatusOr<DataSplit> OpenSplit(const TrainerSpec& spec, const DataPlan& plan,
                                    dataset::Split kind, const dataset::Manifest* sharded) {
  DataSplit split = {.kind = kind};
  const data::SamplerOptions options = SamplerFor(spec, plan, kind);
  ASSIGN_OR_RETURN(data::Sampler sampler, data::Sampler::Create(options));
  split.sampler = std::make_unique<data::Sampler>(std::move(sampler));
  split.samples = split.sampler->samples_per_rank();
  // Samples are dealt as always; only how many are evaluated at once differs.
  split.batch = kind == dataset::Split::kTrain ? spec.local_batch_size : spec.eval_batch_size();
  split.steps = split.sampler->StepsPerEpoch(split.batch);
  if (sharded != nullptr) {
    ASSIGN_OR_RETURN(split.files,
                     dataset::ListSamplesOf(*sharded, kind, options.samples, plan.suffix));
  } else {
    ASSIGN_OR_RETURN(split.files, dataset::ListSamples(spec.run.dataset().path(), kind,
                                                       options.samples, plan.suffix));
  }
  return split;
}

absl::StatusOr<int64_t> DivideCache(const TrainerSpec& spec, const DataPlan& plan, DataSplit* train,
                                    DataSplit* validation) {
  const int64_t mebibytes = spec.extensions.device_cache_mib;
  if (mebibytes == 0) return 0;
  const auto sample_bytes =
      static_cast<int64_t>(plan.format.input_bytes + plan.format.target_bytes);
  const int64_t room = mebibytes * kMebibyte / sample_bytes;
  if (room == 0)
    return InvalidField(rules::kDeviceCacheKey,
                        absl::StrCat(mebibytes, " MiB hold not one sample of ", sample_bytes,
                                     " bytes; ask for more, or for none with 0"));
  train->slots = std::min(room, train->distinct_samples());
  validation->first_slot = train->slots;
  validation->slots = std::min(room - train->slots, validation->distinct_samples());
  return train->slots + validation->slots;
}

absl::Status OpenSource(const TrainerSpec& spec, const DataPlan& plan,
                        const TrainingPosition& start, DataSplit* split) {
  // Of the training samples of the first epoch, those of the steps already done are left out.
  const int64_t done = split->kind == dataset::Split::kTrain ? start.step : 0;
  const int64_t first_epoch = done < split->steps ? start.epoch : start.epoch + 1;
  const data::PrefetchOptions options = {
      .batch_size = split->batch,
      .threads = kReaderThreads,
      .depth = kPrefetchDepth,
      .first_epoch = static_cast<int>(first_epoch),
      .epochs = static_cast<int>(std::max<int64_t>(spec.run.epoch_count_max() - first_epoch, 0))};
  auto order = [&spec, split, epoch_in_part = start.epoch, skipped = done * split->batch,
                cache = data::CachePlan(split->first_slot, split->slots)](int epoch) mutable {
    return SamplesOf(spec, *split, epoch, epoch == epoch_in_part ? skipped : 0, &cache);
  };
  ASSIGN_OR_RETURN(split->source, data::Prefetcher::Create(options, plan.format, std::move(order)));
  return absl::OkStatus();
}

Batch ViewOf(const data::Batch& batch, int64_t samples) {
  const size_t size = static_cast<size_t>(batch.size), count = static_cast<size_t>(samples);
  return {.input = std::span(batch.input).first(batch.input.size() / size * count),
          .targets = std::span(batch.targets).first(batch.targets.size() / size * count),
          .cache = std::span(batch.cache).first(count)};
}

std::optional<Batch> PeekAt(DataSplit* split, int64_t samples) {
  const data::Batch* const batch = split->source->Peek();
  if (batch == nullptr) return std::nullopt;
  return ViewOf(*batch, samples);
}

}  // namespace assay
