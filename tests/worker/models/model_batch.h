// A random batch for any of the models.

#ifndef TESTS_WORKER_MODELS_MODEL_BATCH_H_
#define TESTS_WORKER_MODELS_MODEL_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/random.h"
#include "tests/worker/engine/make_batch.h"
#include "worker/engine/trainable.h"
#include "worker/models/deepcam.h"

namespace assay {

class ModelBatch {
 public:
  // Different for every `salt`.
  explicit ModelBatch(const Trainable& model, uint32_t salt = 0) {
    const Stream stream(3, Purpose::kTest, salt);
    const auto inputs = static_cast<size_t>(model.batch_size() * model.input_elements());
    const auto outputs = static_cast<size_t>(model.batch_size() * model.outputs());
    is_cube_ = model.model().input_type() == DType::kInt16;
    if (is_cube_) {
      for (size_t i = 0; i < inputs; ++i)
        counts_.push_back(static_cast<int16_t>(stream.Below(i, 5)));
      for (size_t i = 0; i < outputs; ++i)
        targets_.push_back(stream.Uniform(inputs + i) - 0.5F);
    } else {
      for (size_t i = 0; i < inputs; ++i)
        map_.push_back(stream.Uniform(i));
      for (size_t i = 0; i < outputs / kDeepcamClasses; ++i)
        labels_.push_back(static_cast<uint8_t>(stream.Below(inputs + i, kDeepcamClasses)));
    }
  }
  Batch view() const { return is_cube_ ? MakeBatch(counts_, targets_) : MakeBatch(map_, labels_); }

 private:
  bool is_cube_ = false;
  std::vector<int16_t> counts_;
  std::vector<float> targets_, map_;
  std::vector<uint8_t> labels_;
};

}  // namespace assay

#endif  // TESTS_WORKER_MODELS_MODEL_BATCH_H_
