#include "tests/bench/step_model.h"

#include <cstring>
#include <span>
#include <utility>

#include "common/random.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr double kLearningRate = 1e-4;  // small enough to stay finite on noise

// `count` numbers of type T, each made from its index.
template <typename T, typename Draw>
std::vector<std::byte> DrawBytes(int64_t count, Draw draw) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * sizeof(T));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const T value = draw(i);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

}  // namespace

StepModel::StepModel(const ModelSpec& spec, std::unique_ptr<Trainable> model)
    : model_(std::move(model)) {
  Draw(spec);
  pins_ = {model_->Pin(input_), model_->Pin(targets_)};
}

void StepModel::Draw(const ModelSpec& spec) {
  const Stream stream(1, Purpose::kTest);
  const int64_t inputs = model_->batch_size() * model_->input_elements();
  if (spec.name == "cosmoflow") {
    input_ = DrawBytes<int16_t>(
        inputs, [&stream](size_t i) { return static_cast<int16_t>(stream.Below(i, 8)); });
    targets_ = DrawBytes<float>(model_->batch_size() * model_->outputs(),
                                [&stream](size_t i) { return 2 * stream.Uniform(i) - 1; });
    return;
  }
  input_ = DrawBytes<float>(inputs, [&stream](size_t i) { return stream.Uniform(i); });
  targets_ =
      DrawBytes<uint8_t>(spec.deepcam.batch * spec.deepcam.height * spec.deepcam.width,
                         [&stream](size_t i) { return static_cast<uint8_t>(stream.Below(i, 3)); });
}

absl::StatusOr<std::unique_ptr<StepModel>> StepModel::Make(const ModelSpec& spec,
                                                           const std::string& backend_name,
                                                           const BackendOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, MakeBackend(backend_name, options));
  ASSIGN_OR_RETURN(std::unique_ptr<Trainable> model, MakeTrainable(spec, std::move(backend)));
  return std::unique_ptr<StepModel>(new StepModel(spec, std::move(model)));
}

absl::Status StepModel::Train() {
  const auto keep = [](std::span<float>) { return absl::OkStatus(); };
  // As in a run whose next batch has been read in time.
  const Batch same = batch();
  ASSIGN_OR_RETURN(loss_, model_->TrainStep(same, {.step = step_++}, kLearningRate, keep, &same));
  return absl::OkStatus();
}

absl::Status StepModel::Evaluate() {
  const Batch same = batch();
  return model_->EvalBatch(same, &same).status();
}

}  // namespace assay
