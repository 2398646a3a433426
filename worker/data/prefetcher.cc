#include "worker/data/prefetcher.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::data {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kMaxDepth = 1024;

absl::Status CheckRange(absl::string_view name, int value, int low, int high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; it must be in ", low, "..", high));
}

absl::Status CheckOptions(const PrefetchOptions& options) {
  RETURN_IF_ERROR(CheckRange("batch_size", options.batch_size, 1, 1 << 16));
  RETURN_IF_ERROR(CheckRange("threads", options.threads, 1, kMaxThreads));
  RETURN_IF_ERROR(CheckRange("depth", options.depth, 2, kMaxDepth));
  return CheckRange("epochs", options.epochs, 0, 1 << 24);
}

}  // namespace

EpochOrder OrderOf(const Sampler& sampler, std::string dir, std::vector<std::string> names) {
  CHECK(static_cast<int64_t>(names.size()) >= sampler.options().samples)
      << "names=" << names.size() << " samples=" << sampler.options().samples;
  return [sampler, dir = std::move(dir), names = std::move(names)](int epoch) {
    std::vector<SampleToRead> samples;
    for (const uint32_t sample : sampler.Order(epoch))
      samples.push_back({.path = JoinPath(dir, names[sample])});
    return samples;
  };
}

absl::StatusOr<std::unique_ptr<Prefetcher>> Prefetcher::Create(const PrefetchOptions& options,
                                                               const SampleFormat& format,
                                                               EpochOrder order) {
  RETURN_IF_ERROR(CheckOptions(options));
  return std::unique_ptr<Prefetcher>(new Prefetcher(options, format, std::move(order)));
}

Prefetcher::Prefetcher(const PrefetchOptions& options, const SampleFormat& format, EpochOrder order)
    : options_(options),
      format_(format),
      slots_(static_cast<size_t>(options.depth)),
      order_(std::move(order)),
      next_epoch_(options.first_epoch) {
  const size_t samples = static_cast<size_t>(options.batch_size);
  for (Slot& slot : slots_) {
    slot.batch.input.resize(samples * format.input_bytes);
    slot.batch.targets.resize(samples * format.target_bytes);
    slot.batch.cache.resize(samples);
    slot.batch.size = options.batch_size;
    slot.missing = options.batch_size;
  }
}

Prefetcher::~Prefetcher() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  slot_freed_.NotifyAll();
  for (std::thread& thread : threads_)
    thread.join();
}

void Prefetcher::Start() {
  CHECK(threads_.empty()) << "started twice";
  for (int i = 0; i < options_.threads; ++i)
    threads_.emplace_back([this] { ReadLoop(); });
}

Prefetcher::Slot* Prefetcher::SlotOf(int64_t batch) {
  return &slots_[static_cast<size_t>(batch % options_.depth)];
}

void Prefetcher::ReadLoop() {
  const std::unique_ptr<SampleReader> reader = format_.make_reader();
  for (std::optional<Ticket> ticket = TakeTicket(); ticket; ticket = TakeTicket()) {
    const bool is_read = !ticket->sample.cache.is_there;
    const absl::Status status = is_read ? ReadSample(*ticket, reader.get()) : absl::OkStatus();
    Finish(*ticket, status, is_read ? reader->stored_bytes() : 0);
  }
}

// Whether the slot of the next ticket is free.
bool Prefetcher::CanTake() const {
  return next_ticket_ / options_.batch_size < released_ + options_.depth;
}

// Makes epoch_samples_[epoch_position_] the next sample; false if there is none or an epoch is bad.
bool Prefetcher::HasMoreTickets() {
  if (epoch_position_ < epoch_samples_.size()) return true;
  if (next_epoch_ == options_.first_epoch + options_.epochs) {
    is_exhausted_ = true;
    return false;
  }
  epoch_samples_ = order_(next_epoch_++);
  epoch_position_ = 0;
  const size_t batch = static_cast<size_t>(options_.batch_size);
  if (!epoch_samples_.empty() && epoch_samples_.size() % batch == 0) return true;
  Fail(next_ticket_, absl::InvalidArgumentError(
                         absl::StrCat("epoch ", next_epoch_ - 1, " has ", epoch_samples_.size(),
                                      " samples for this rank, not a "
                                      "positive multiple of the local batch ",
                                      batch)));
  return false;
}

// The next sample to read, when there is room for it; none when reading is over.
std::optional<Prefetcher::Ticket> Prefetcher::TakeTicket() {
  MutexLock lock(&mutex_);
  while (!is_stopping_ && error_.ok() && !CanTake())
    slot_freed_.Wait(&mutex_);
  if (is_stopping_ || !error_.ok() || !HasMoreTickets()) {
    batch_ready_.NotifyAll();  // Next may wait for a batch that will not come
    return std::nullopt;
  }
  Ticket ticket = {next_ticket_++, std::move(epoch_samples_[epoch_position_++])};
  const auto place = static_cast<size_t>(ticket.number % options_.batch_size);
  SlotOf(ticket.number / options_.batch_size)->batch.cache[place] = ticket.sample.cache;
  return ticket;
}

// Reads the file into its place in its slot.
absl::Status Prefetcher::ReadSample(const Ticket& ticket, SampleReader* reader) {
  Batch& batch = SlotOf(ticket.number / options_.batch_size)->batch;
  const size_t place = static_cast<size_t>(ticket.number % options_.batch_size);
  const size_t input = format_.input_bytes, targets = format_.target_bytes;
  return reader->Read(ticket.sample, {std::span(batch.input).subspan(place * input, input),
                                      std::span(batch.targets).subspan(place * targets, targets)});
}

void Prefetcher::Fail(int64_t ticket, const absl::Status& status) {
  if (!error_.ok() && error_ticket_ < ticket) return;
  error_ = status;
  error_ticket_ = ticket;
  slot_freed_.NotifyAll();
}

void Prefetcher::Finish(const Ticket& ticket, const absl::Status& status, int64_t bytes) {
  MutexLock lock(&mutex_);
  stored_bytes_ += bytes;
  Slot* slot = SlotOf(ticket.number / options_.batch_size);
  --slot->missing;
  if (!status.ok()) Fail(ticket.number, status);
  if (slot->missing == 0 || !status.ok()) batch_ready_.NotifyAll();
}

absl::StatusOr<const Batch*> Prefetcher::Next() {
  if (threads_.empty())
    return absl::FailedPreconditionError("Next before Start: reading must be begun first");
  ASSIGN_OR_RETURN(Batch* const batch, WaitForNext());
  if (!std::exchange(is_next_restored_, false)) RestoreTargets(batch);
  return batch;
}

const Batch* Prefetcher::Peek() {
  if (threads_.empty()) return nullptr;
  Batch* const batch = FindNext();
  if (batch != nullptr && !std::exchange(is_next_restored_, true)) RestoreTargets(batch);
  return batch;
}

// What is to be delivered next, if all of it was read.
Batch* Prefetcher::FindNext() {
  MutexLock lock(&mutex_);
  const int64_t last_ticket = (delivered_ + 1) * options_.batch_size - 1;
  Slot* const slot = SlotOf(delivered_);
  if (!returned_error_.ok() || HasFailed(last_ticket) || slot->missing > 0) return nullptr;
  return &slot->batch;
}

// Those of samples that were not read again. All batches before this one are complete, so the
// targets are there.
void Prefetcher::RestoreTargets(Batch* batch) {
  const size_t size = format_.target_bytes;
  for (size_t i = 0; i < batch->cache.size(); ++i) {
    const CachePlace& place = batch->cache[i];
    if (place.slot == CachePlace::kNowhere) continue;
    std::byte* const targets = batch->targets.data() + i * size;
    std::vector<std::byte>& kept = kept_targets_[place.slot];
    if (place.is_there) {
      CHECK(kept.size() == size) << "slot=" << place.slot;
      std::copy(kept.begin(), kept.end(), targets);
    } else {
      kept.assign(targets, targets + size);
    }
  }
}

std::vector<std::span<std::byte>> Prefetcher::memory() {
  std::vector<std::span<std::byte>> memory;
  for (Slot& slot : slots_) {
    memory.emplace_back(slot.batch.input);
    memory.emplace_back(slot.batch.targets);
  }
  return memory;
}

absl::StatusOr<Batch*> Prefetcher::WaitForNext() {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(returned_error_);
  ReleaseDelivered();
  const int64_t first_ticket = delivered_ * options_.batch_size;
  const int64_t last_ticket = first_ticket + options_.batch_size - 1;
  Slot* slot = SlotOf(delivered_);
  while (slot->missing > 0 && !HasFailed(last_ticket) &&
         !(is_exhausted_ && next_ticket_ <= first_ticket))
    batch_ready_.Wait(&mutex_);
  if (HasFailed(last_ticket)) return returned_error_ = error_;
  if (slot->missing > 0) return absl::OutOfRangeError("all batches have been delivered");
  ++delivered_;
  return &slot->batch;
}

// Frees the slot of the batch that the trainer has worked on.
void Prefetcher::ReleaseDelivered() {
  if (released_ == delivered_) return;
  SlotOf(released_)->missing = options_.batch_size;
  ++released_;
  slot_freed_.NotifyAll();
}

// Whether reading a sample up to this ticket failed.
bool Prefetcher::HasFailed(int64_t last_ticket) const {
  return !error_.ok() && error_ticket_ <= last_ticket;
}

int64_t Prefetcher::stored_bytes() const {
  MutexLock lock(&mutex_);
  return stored_bytes_;
}

}  // namespace assay::data
