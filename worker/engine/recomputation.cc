#include "worker/engine/recomputation.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "worker/engine/layer_cost.h"

namespace assay {
namespace {

// So many operations take about as long as moving one number through memory, on processors and on
// GPUs; only the order of costs follows from it.
constexpr double kFlopsPerNumber = 40;
// Into how many parts, by traffic, the model is cut at most.
constexpr int kPartsMax = 256;

struct Segment {
  SequenceLayer* sequence;
  LayerRange range;
  LayerCost cost;  // of the Forward that runs again

  double Effort() const { return cost.flops.forward + kFlopsPerNumber * cost.traffic.forward; }
};

double EffortOf(const std::vector<Segment>& segments) {
  double sum = 0;
  for (const Segment& segment : segments)
    sum += segment.Effort();
  return sum;
}

// Cuts a model into segments whose traffic is just above a given one.
class Cutter {
 public:
  explicit Cutter(double traffic) : traffic_(traffic) {}

  void Cut(SequenceLayer* sequence, Shape shape) {
    Run run(sequence);
    for (size_t i = 0; i < sequence->size(); ++i) {
      Layer* const layer = sequence->layer(i);
      const LayerCost cost = layer->Cost(shape, /*wants_dx=*/false);
      const bool is_divisible = !layer->sequences().empty();
      const LayerLiveness live = layer->liveness();
      if (live.waits_for_ranks || (is_divisible && cost.traffic.forward > traffic_)) {
        Close(&run, i);
        for (SequenceLayer* const inner : layer->sequences())
          Cut(inner, shape);
        run.begin = i + 1;
      } else if (run.begin == i && live.forward_in_place) {
        run.begin = i + 1;  // its input is gone when it would run again
      } else {
        run.Add(cost, live.time_steps > 1);
        const bool is_overwritten =
            i + 1 < sequence->size() && sequence->layer(i + 1)->liveness().forward_in_place;
        if (run.sum.traffic.forward > traffic_ && !is_overwritten) Close(&run, i + 1);
      }
      shape = layer->output();
    }
    Close(&run, sequence->size());
  }

  std::vector<Segment> Take() { return std::move(segments_); }

 private:
  struct Run {
    explicit Run(SequenceLayer* in) : sequence(in) {}
    void Add(const LayerCost& cost, bool is_repeated_as_last) {
      sum += cost;
      repeated = is_repeated_as_last ? sum : before;
      before = sum;
    }

    SequenceLayer* sequence;
    size_t begin = 0;
    LayerCost sum, before, repeated;
  };

  void Close(Run* run, size_t end) {
    if (end > run->begin && run->repeated.traffic.forward > 0)
      segments_.push_back({run->sequence, {run->begin, end}, run->repeated});
    SequenceLayer* const sequence = run->sequence;
    *run = Run(sequence);
    run->begin = end;
  }

  const double traffic_;
  std::vector<Segment> segments_;
};

class Chooser {
 public:
  Chooser(SequenceLayer* model, size_t limit,
          absl::FunctionRef<absl::StatusOr<size_t>()> planned_bytes)
      : model_(model), limit_(limit), planned_bytes_(planned_bytes) {}

  absl::StatusOr<Recomputation> Choose(const Shape& input) {
    const LayerCost all = model_->Cost(input, /*wants_dx=*/false);
    ASSIGN_OR_RETURN(bool is_found, Fits({}));
    std::vector<Segment> best;
    for (double parts = 1; parts <= kPartsMax && (!is_found || !best.empty()); parts *= 1.25) {
      Apply({});
      Cutter cutter(all.traffic.forward / parts);
      cutter.Cut(model_, input);
      std::vector<Segment> segments = cutter.Take();
      ASSIGN_OR_RETURN(const bool fits, Fits(segments));
      if (!fits) continue;
      RETURN_IF_ERROR(Thin(&segments));
      if (is_found && EffortOf(segments) >= EffortOf(best)) continue;
      is_found = true;
      best = std::move(segments);
    }
    if (!is_found) return TooLittle();
    Apply(best);
    Recomputation chosen = {.segments = std::ssize(best)};
    for (const Segment& segment : best)
      chosen.flops_share += segment.cost.flops.forward / all.flops.forward;
    return chosen;
  }

 private:
  // Makes these, and no others, recomputed.
  void Apply(const std::vector<Segment>& segments) {
    for (SequenceLayer* const sequence : applied_)
      sequence->Recompute({});
    std::map<SequenceLayer*, std::vector<LayerRange>> ranges;
    for (const Segment& segment : segments)
      ranges[segment.sequence].push_back(segment.range);
    applied_.clear();
    for (auto& [sequence, of_sequence] : ranges) {
      std::sort(of_sequence.begin(), of_sequence.end(),
                [](const LayerRange& a, const LayerRange& b) { return a.begin < b.begin; });
      sequence->Recompute(of_sequence);
      applied_.push_back(sequence);
    }
  }

  absl::StatusOr<bool> Fits(const std::vector<Segment>& segments) {
    Apply(segments);
    ASSIGN_OR_RETURN(const size_t bytes, planned_bytes_());
    least_ = std::min(least_, bytes);
    return bytes <= limit_;
  }

  // Takes segments back, the most costly first, as long as the others do.
  absl::Status Thin(std::vector<Segment>* segments) {
    std::sort(segments->begin(), segments->end(),
              [](const Segment& a, const Segment& b) { return a.Effort() > b.Effort(); });
    for (size_t i = 0; i < segments->size();) {
      std::vector<Segment> fewer = *segments;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      ASSIGN_OR_RETURN(const bool fits, Fits(fewer));
      if (fits) {
        *segments = std::move(fewer);
      } else {
        ++i;
      }
    }
    return absl::OkStatus();
  }

  absl::Status TooLittle() const {
    constexpr size_t kMib = size_t{1} << 20;
    return absl::ResourceExhaustedError(absl::StrCat(
        limit_ / kMib, " MiB are too little for training, whatever is recomputed; the least is ",
        (least_ + kMib - 1) / kMib, " MiB"));
  }

  SequenceLayer* const model_;
  const size_t limit_;
  const absl::FunctionRef<absl::StatusOr<size_t>()> planned_bytes_;
  std::vector<SequenceLayer*> applied_;
  size_t least_ = std::numeric_limits<size_t>::max();  // of all tried
};

}  // namespace

absl::StatusOr<Recomputation> ChooseRecomputation(
    SequenceLayer* model, const Shape& input, size_t limit,
    absl::FunctionRef<absl::StatusOr<size_t>()> planned_bytes) {
  return Chooser(model, limit, planned_bytes).Choose(input);
}

}  // namespace assay
