#include "worker/data/sampler.h"

#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"

#include "common/random.h"
#include "common/status.h"

namespace assay::data {
namespace {

absl::Status CheckRanks(const SamplerOptions& options) {
  if (options.world_size < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("world_size is ", options.world_size, "; it must be at least 1"));
  if (options.rank < 0 || options.rank >= options.world_size)
    return absl::InvalidArgumentError(
        absl::StrCat("rank is ", options.rank, "; it must be in 0..", options.world_size - 1));
  if (options.ranks_per_node < 1 || options.world_size % options.ranks_per_node != 0)
    return absl::InvalidArgumentError(absl::StrCat("ranks_per_node is ", options.ranks_per_node,
                                                   "; it must divide world_size ",
                                                   options.world_size));
  return absl::OkStatus();
}

// The reference aborts too when there is a remainder, so no sample is ever counted in part.
absl::Status CheckSamples(const SamplerOptions& options) {
  if (options.local_batch < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("local_batch is ", options.local_batch, "; it must be at least 1"));
  if (options.samples < 1 || options.samples > std::numeric_limits<uint32_t>::max())
    return absl::InvalidArgumentError(
        absl::StrCat("samples is ", options.samples, "; it must be in 1..2^32-1"));
  const int64_t global_batch = int64_t{options.world_size} * options.local_batch;
  const int64_t rest = options.samples % global_batch;
  if (options.remainder == Remainder::kDrop && options.samples < global_batch)
    return absl::InvalidArgumentError(absl::StrCat(options.samples,
                                                   " samples do not fill one global batch of ",
                                                   global_batch, "; use a smaller one"));
  if (rest == 0 || options.remainder != Remainder::kRefuse) return absl::OkStatus();
  const int64_t below = options.samples - rest;
  return absl::InvalidArgumentError(
      absl::StrCat(options.samples, " samples are not a multiple of the global batch ",
                   global_batch, " (", options.world_size, " ranks x local batch ",
                   options.local_batch, "): use ", below > 0 ? absl::StrCat(below, " or ") : "",
                   below + global_batch, " samples, or another batch"));
}

}  // namespace

absl::StatusOr<Sampler> Sampler::Create(const SamplerOptions& options) {
  RETURN_IF_ERROR(CheckRanks(options));
  RETURN_IF_ERROR(CheckSamples(options));
  return Sampler(options);
}

std::vector<uint32_t> Sampler::NodeSamples() const {
  if (!options_.staged) {
    std::vector<uint32_t> all(static_cast<size_t>(options_.samples));
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }
  // Rank r stages samples r, r + world_size, ...; the node's list is that of its ranks, merged.
  const int64_t first_rank = options_.rank - options_.rank % options_.ranks_per_node;
  std::vector<uint32_t> samples;
  samples.reserve(static_cast<size_t>(samples_per_rank() * options_.ranks_per_node));
  for (int64_t round = 0; round < options_.samples; round += options_.world_size)
    for (int64_t rank = first_rank; rank < first_rank + options_.ranks_per_node; ++rank)
      if (round + rank < options_.samples) samples.push_back(static_cast<uint32_t>(round + rank));
  return samples;
}

std::vector<uint32_t> Sampler::SamplesToStage() const {
  std::vector<uint32_t> samples;
  samples.reserve(static_cast<size_t>(samples_per_rank()));
  for (int64_t sample = options_.rank; sample < options_.samples; sample += options_.world_size)
    samples.push_back(static_cast<uint32_t>(sample));
  return samples;
}

int64_t Sampler::samples_per_rank() const {
  const int64_t share = options_.samples / options_.world_size;
  const int64_t rest = options_.samples % options_.world_size;
  switch (options_.remainder) {
    case Remainder::kRefuse:
      break;
    case Remainder::kDrop:
      return share - share % options_.local_batch;
    case Remainder::kUneven:
      // Of the rest, sample i goes to rank i mod world_size; these are consecutive from 0 on.
      return share + (options_.rank < rest ? 1 : 0);
  }
  return share;
}

std::vector<uint32_t> Sampler::UnevenPart() const {
  const int64_t share = options_.samples / options_.world_size;
  std::vector<uint32_t> mine(static_cast<size_t>(share));
  std::iota(mine.begin(), mine.end(), static_cast<uint32_t>(options_.rank * share));
  const int64_t own_rest = options_.world_size * share + options_.rank;
  if (own_rest < options_.samples) mine.push_back(static_cast<uint32_t>(own_rest));
  return mine;
}

std::vector<uint32_t> Sampler::Order(int epoch) const {
  if (options_.remainder == Remainder::kUneven)
    return options_.staged ? SamplesToStage() : UnevenPart();
  std::vector<uint32_t> all = NodeSamples();
  // The stream has rank 0 on every rank: all draw the same permutation.
  if (options_.shuffle)
    Shuffle(Stream(options_.seed, Purpose::kShuffle, 0, static_cast<uint32_t>(epoch)), all);
  const int shards = options_.staged ? options_.ranks_per_node : options_.world_size;
  const int shard = options_.staged ? options_.rank % options_.ranks_per_node : options_.rank;
  std::vector<uint32_t> mine;
  mine.reserve(static_cast<size_t>(samples_per_rank()));
  for (size_t i = static_cast<size_t>(shard); i < all.size(); i += static_cast<size_t>(shards))
    mine.push_back(all[i]);
  mine.resize(static_cast<size_t>(samples_per_rank()));
  return mine;
}

}  // namespace assay::data
