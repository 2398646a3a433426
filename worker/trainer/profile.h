// What a run does with the machine, counted while it goes on: arithmetic, bytes, waits, memory.
//
// Every rank counts for itself, which costs some readings of the clock for each step. After each
// epoch, and after run_stop, the ranks give their counts to rank 0, which puts one line among its
// progress records: {"profile": {...}}, figures since the process began. docs/reviewer.md explains
// each figure. Never in the MLLOG file, never evidence.

#ifndef WORKER_TRAINER_PROFILE_H_
#define WORKER_TRAINER_PROFILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/json_value.h"
#include "worker/comm/collective.h"
#include "worker/comm/counting.h"
#include "worker/data/staging.h"
#include "worker/engine/gradient_buckets.h"
#include "worker/engine/rank_average.h"
#include "worker/engine/trainable.h"

namespace assay {

// Of one rank, since its process began. Trivially copyable: it travels to rank 0 as it is.
struct ProfileCounts {
  int64_t train_samples = 0, eval_samples = 0;  // that went through its model
  double train_flops = 0, eval_flops = 0;
  double train_bytes = 0, eval_bytes = 0;  // that these samples must move through memory
  double train_s = 0, eval_s = 0;          // in the phase, whatever was done in it
  double input_wait_s = 0;                 // waiting for a batch to be read
  double input_copy_s = 0;                 // copying batches to the backend, or waiting for copies
  int64_t cached_samples = 0;              // of both kinds, that the device had kept
  int64_t read_bytes = 0;                  // of sample files, by the trainer's readers
  int64_t staged_bytes = 0;                // copied to the node before
  double staged_s = 0;                     // what that took
  double staged_file_p99_s = 0;            // 99 of 100 files took no longer
  int64_t staged_retries = 0;              // files that were read twice
  int64_t memory_peak_bytes = 0;           // resident, of the process, since ProbePeak
  double peak_flops_per_s = 0;             // of its share of the node, fp32; 0: not known
  double peak_bytes_per_s = 0;             // the same, of memory
  int64_t peak_threads = 0;
  AverageCounts device_averages = {};  // of gradients, by the devices themselves
  RankTraffic device_traffic = {};     // means of groups, and messages
  comm::Traffic traffic = {};          // of the host's collectives
};

// What a record says besides counts.
struct ProfileHead {
  int epoch = 0;          // from 1: the last that was begun
  bool is_final = false;  // after run_stop
  std::string backend;
  int ranks_per_sample = 1;  // that share each sample, and so count it once each
  int ranks_per_node = 1;    // consecutive ones
};

// The record of a run from the counts of all its ranks: sums of work and bytes, means of times (the
// ranks work side by side) with the largest beside them where ranks may differ.
JsonObject ProfileRecord(const ProfileHead& head, std::span<const ProfileCounts> ranks);

// The most memory that this process has had resident (VmHWM); 0 where the kernel does not say.
int64_t MemoryPeakBytes();
// From now on MemoryPeakBytes starts again from what is resident; without effect where the kernel
// does not offer it.
void ForgetMemoryPeak();

// The counts of this rank. Not thread-safe.
class Profile {
 public:
  // Adds the time that it lives to one of the counts.
  class Span {
   public:
    Span(Profile* profile, double ProfileCounts::*seconds)
        : profile_(profile), seconds_(seconds), begin_(profile->clock_->Mono()) {}
    ~Span() {
      profile_->counts_.*seconds_ += absl::ToDoubleSeconds(profile_->clock_->Mono() - begin_);
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Profile* const profile_;
    double ProfileCounts::*const seconds_;
    const MonoTime begin_;
  };

  explicit Profile(const Clock* clock) : clock_(clock) {}

  // Measures what the host can reach; before the run's clock starts, and best on all ranks at once,
  // because those of a node share its memory. What it takes does not count for the memory's peak.
  void ProbePeak();
  // What a sample costs from now on.
  void set_work(const SampleWork& work) { work_ = work; }
  // `comm`, counted from now on. The result must outlive this profile's last Gather.
  std::unique_ptr<comm::Collective> Watch(std::unique_ptr<comm::Collective> comm);

  void Staged(const data::Staged& staged);
  void Trained(int64_t samples);
  void Evaluated(int64_t samples);

  // Collective: the counts of all ranks, in their order, on every rank. Errors of AllGather.
  absl::StatusOr<std::vector<ProfileCounts>> Gather(MonoTime deadline);

  ProfileCounts& counts() { return counts_; }

 private:
  const Clock* const clock_;
  ProfileCounts counts_;
  comm::CountingCollective* comm_ = nullptr;
  SampleWork work_;  // of one sample
};

}  // namespace assay

#endif  // WORKER_TRAINER_PROFILE_H_
