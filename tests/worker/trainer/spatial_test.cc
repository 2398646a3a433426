// Ranks that share samples against one process that has them whole: predictions, gradients and
// several optimizer steps, for both kernels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/comm/memory_world.h"
#include "tests/worker/comm/world.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/engine/make_batch.h"
#include "worker/comm/ring.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/layers.h"
#include "worker/engine/spatial_layers.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"
#include "worker/trainer/device_ranks.h"
#include "worker/trainer/spatial_ranks.h"

namespace assay {
namespace {

using comm::testing::OnEveryRank;
using comm::testing::Soon;
using testing::IsOk;

// How many ranks, and what each of them has.
struct Division {
  SpatialGrid grid;
  int groups = 1;
  int64_t kernel = 3;
  bool on_device = false;     // faked on the CPU: memory that is the backend's alone
  bool devices_meet = false;  // and they exchange by themselves
  bool is_limited = false;    // to less memory than training takes without recomputing

  int ranks() const { return grid.size() * groups; }
};

void PrintTo(const Division& division, std::ostream* out) {
  *out << division.groups << " groups of " << division.grid.ToString() << ", kernel "
       << division.kernel;
}

std::string NameOf(const ::testing::TestParamInfo<Division>& info) {
  const Division& division = info.param;
  return absl::StrCat("Kernel", division.kernel, "Grid", division.grid.ToString(), "Groups",
                      division.groups, division.on_device ? "OnDevice" : "",
                      division.devices_meet ? "s" : "", division.is_limited ? "Limited" : "");
}

// Counts as in voids and clusters: many zeros.
std::vector<int16_t> RandomCounts(const Shape& shape) {
  const Stream stream(3, Purpose::kTest);
  std::vector<int16_t> counts(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < counts.size(); ++i) {
    const float u = stream.Uniform(i);
    counts[i] = static_cast<int16_t>(6 * u * u * u);
  }
  return counts;
}

std::vector<double> RandomNumbers(size_t count, uint32_t salt) {
  const Stream stream(4, Purpose::kTest, salt);
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] = 2 * stream.UniformDouble(i) - 1;
  return numbers;
}

// The part of `whole` (B, D, H, W, C) that a rank reads: `samples` from `first` on, `depth` and
// `height` of each; zeros outside.
std::vector<int16_t> Cut(const std::vector<int16_t>& whole, const Shape& shape, int64_t first,
                         int64_t samples, const Interval& depth, const Interval& height) {
  std::vector<int16_t> part;
  const int64_t line = shape[3] * shape[4];
  for (int64_t b = first; b < first + samples; ++b)
    for (int64_t d = depth.begin; d < depth.begin + depth.extent; ++d)
      for (int64_t h = height.begin; h < height.begin + height.extent; ++h)
        for (int64_t i = 0; i < line; ++i) {
          const bool is_inside = d >= 0 && d < shape[1] && h >= 0 && h < shape[2];
          const int64_t at = ((b * shape[1] + d) * shape[2] + h) * line + i;
          part.push_back(is_inside ? whole[static_cast<size_t>(at)] : int16_t{0});
        }
  return part;
}

// Largest difference, relative to the largest expected value.
template <typename T>
double Difference(const std::vector<T>& found, const std::vector<T>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double scale = 0, difference = 0;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    scale = std::max(scale, std::abs(double{expected[i]}));
    difference = std::max(difference, std::abs(double{found[i]} - double{expected[i]}));
  }
  EXPECT_GT(scale, 0);
  return difference / scale;
}

// --- Three small blocks in double ----------------------------------------------------------------

struct Outcome {
  std::vector<double> prediction;
  std::vector<double> gradients;
};

class SmallSpatialTest : public ::testing::TestWithParam<Division> {
 protected:
  static constexpr int64_t kBatch = 2;  // of each group
  static constexpr int64_t kOutputs = 3;

  Shape Whole() const { return {kBatch * GetParam().groups, 32, 16, 8, 2}; }

  // The same model for a part of the samples; `group` null: whole ones.
  static std::unique_ptr<Model> Make(Backend* backend, const Shape& input, int64_t kernel,
                                     SpatialGroup* group) {
    auto model = std::make_unique<Model>(backend, input);
    Shape shape = input;
    const auto add = [&](std::unique_ptr<Layer> layer) {
      shape = layer->output();
      model->Add(std::move(layer));
    };
    add(std::make_unique<Log1pLayer>(backend, shape));
    for (const int block : {1, 2, 3}) {
      ConvPoolLayer::Options options = {
          .name = absl::StrCat("conv", block), .kernel = kernel, .filters = 2 + block};
      if (group != nullptr) {
        const SpatialGrid& grid = group->place().grid;
        options.has_halo = {grid.IsSplit(0), grid.IsSplit(1), false};
        add(std::make_unique<HaloLayer>(backend, group, shape, kernel));
      }
      add(std::make_unique<ConvPoolLayer>(backend, shape, options));
    }
    if (group != nullptr) add(std::make_unique<GatherLayer>(backend, group, shape));
    const Activation tanh = {Activation::Kind::kScaledTanh, 1.2};
    add(std::make_unique<DenseLayer>(
        backend, shape, DenseLayer::Options{.name = "fc", .units = kOutputs, .activation = tanh}));
    EXPECT_THAT(model->Commit(), IsOk());
    model->Initialize(1);
    return model;
  }

  // Forward, and backward from `dy`.
  static Outcome Run(Backend* backend, Model* model, std::vector<int16_t> counts,
                     std::vector<double> dy) {
    const Tensor input = {counts.data(), model->input(), DType::kInt16};
    const Tensor prediction = model->Forward(input, {.is_training = true});
    Outcome pass;
    pass.prediction.resize(dy.size());
    backend->CopyOut(prediction, pass.prediction.data());
    model->Backward({dy.data(), prediction.shape, DType::kFloat64}, {.is_training = true});
    const std::span<double> gradients = model->flat_gradients().Span<double>();
    pass.gradients.assign(gradients.begin(), gradients.end());
    return pass;
  }

  Outcome RunRank(comm::Collective* comm, const std::vector<int16_t>& counts,
                  const std::vector<double>& dy) const {
    const Division& division = GetParam();
    SpatialRanks group(division.grid, comm->rank());
    group.Connect(comm, Soon);
    const int64_t first = comm->rank() / division.grid.size() * kBatch;
    const Shape whole = Whole();
    const Interval depth = BlockAlong(0, whole[1], group.place(), {});
    const Interval height = BlockAlong(1, whole[2], group.place(), {});
    const auto rows = dy.begin() + first * kOutputs;
    std::vector<double> own_dy(rows, rows + kBatch * kOutputs);
    for (double& value : own_dy)
      value *= division.groups;  // the mean over the groups divides by it again
    ReferenceBackend<double> backend;
    const auto model = Make(&backend, {kBatch, depth.extent, height.extent, whole[3], whole[4]},
                            division.kernel, &group);
    Outcome pass =
        Run(&backend, model.get(), Cut(counts, whole, first, kBatch, depth, height), own_dy);
    EXPECT_THAT(comm::AllReduceMean(comm, std::span<double>(pass.gradients), Soon()), IsOk());
    EXPECT_THAT(comm->Close(Soon()), IsOk());
    return pass;
  }
};

TEST_P(SmallSpatialTest, EqualsOneProcessInDouble) {
  const Division& division = GetParam();
  const std::vector<int16_t> counts = RandomCounts(Whole());
  const std::vector<double> dy = RandomNumbers(static_cast<size_t>(Whole()[0] * kOutputs), 1);
  ReferenceBackend<double> backend;
  const auto whole = Make(&backend, Whole(), division.kernel, nullptr);
  const Outcome expected = Run(&backend, whole.get(), counts, dy);
  const RealClock clock;
  const auto world = comm::OpenMemoryWorld(division.ranks(), &clock);
  std::vector<Outcome> found(static_cast<size_t>(division.ranks()));

  OnEveryRank(world, [&](comm::Collective* comm) {
    found[static_cast<size_t>(comm->rank())] = RunRank(comm, counts, dy);
  });

  constexpr double kTolerance = 1e-13;  // only the order of sums differs
  for (int rank = 0; rank < division.ranks(); ++rank) {
    SCOPED_TRACE(rank);
    const Outcome& pass = found[static_cast<size_t>(rank)];
    const auto rows = expected.prediction.begin() + rank / division.grid.size() * kBatch * kOutputs;
    EXPECT_LE(Difference(pass.prediction, {rows, rows + kBatch * kOutputs}), kTolerance);
    EXPECT_LE(Difference(pass.gradients, expected.gradients), kTolerance);
    EXPECT_EQ(pass.gradients, found[0].gradients);
  }
}

std::vector<Division> BothKernels(std::vector<Division> divisions) {
  const size_t count = divisions.size();
  for (size_t i = 0; i < count; ++i) {
    divisions.push_back(divisions[i]);
    divisions.back().kernel = 2;
  }
  return divisions;
}

// 4x2 leaves one plane along D at the end: each side's halo is the same plane.
INSTANTIATE_TEST_SUITE_P(Divisions, SmallSpatialTest,
                         ::testing::ValuesIn(BothKernels({{{{2, 1}}},
                                                          {{{1, 2}}},
                                                          {{{2, 2}}},
                                                          {{{4, 1}}},
                                                          {{{4, 2}}},
                                                          {{{2, 1}}, 2},
                                                          {{{2, 2}}, 2}})),
                         NameOf);

// --- CosmoFlow itself, in float ------------------------------------------------------------------

struct Training {
  std::vector<float> losses;
  std::vector<float> gradients;  // of the first step
  std::vector<float> parameters;
  double error = 0;  // of the evaluation after the last step: a sum
};

class CosmoflowSpatialTest : public ::testing::TestWithParam<Division> {
 protected:
  static constexpr int64_t kEdge = 64;
  static constexpr int64_t kBatch = 1;  // of each group
  static constexpr int64_t kOutputs = 4;
  static constexpr int kSteps = 3;

  static CosmoflowSpec SpecOf(int64_t batch, const Division& division, const SpatialGrid& grid) {
    return {.batch = batch,
            .cube_edge = kEdge,
            .kernel = division.kernel,
            .base_filters = division.on_device ? 1 : 8,
            .dropout = 0,
            .l2 = 0.01,
            .grid = grid};
  }

  // `*device`: set if the division is on one; lives as long as the backend.
  static absl::StatusOr<std::unique_ptr<Backend>> MakeBackendFor(const Division& division,
                                                                 const cuda::HostDevice** device) {
    if (!division.on_device) return MakeBackend("onednn");
    auto made = std::make_unique<cuda::HostDevice>();
    *device = made.get();
    return cuda::CudaBackend::Make(std::move(made), {});
  }

  static Shape Whole(int64_t batch) { return {batch, kEdge, kEdge, kEdge, 4}; }

  static std::unique_ptr<Trainable> Make(const CosmoflowSpec& spec, const Division& division,
                                         SpatialGroup* group, const cuda::HostDevice** device,
                                         int64_t limit_bytes = 0) {
    auto backend = MakeBackendFor(division, device);
    EXPECT_THAT(backend, IsOk());
    auto model = MakeTrainable({.cosmoflow = spec,
                                .options = {.seed = 9},
                                .memory_limit_bytes = limit_bytes,
                                .group = group},
                               *std::move(backend));
    EXPECT_THAT(model, IsOk());
    return *std::move(model);
  }

  static Training Train(Trainable* model, const std::vector<int16_t>& voxels,
                        const std::vector<float>& targets, comm::Collective* comm) {
    Training training;
    for (uint64_t step = 0; step < kSteps; ++step) {
      const auto loss = model->TrainStep(
          MakeBatch(voxels, targets), {.epoch = 0, .step = step}, 0.01,
          [&](std::span<float> gradients) {
            const absl::Status status =
                comm == nullptr ? absl::OkStatus() : comm::AllReduceMean(comm, gradients, Soon());
            if (step == 0) training.gradients.assign(gradients.begin(), gradients.end());
            return status;
          });
      EXPECT_THAT(loss, IsOk());
      // Where devices have averaged them; the fake's memory is the host's.
      if (step == 0 && training.gradients.empty()) {
        const std::span<float> gradients = model->model().flat_gradients().Span<float>();
        training.gradients.assign(gradients.begin(), gradients.end());
      }
      training.losses.push_back(loss.value_or(0));
    }
    const auto error = model->EvalBatch(MakeBatch(voxels, targets));
    EXPECT_THAT(error, IsOk());
    training.error = error.value_or(EvalSums{}).quality;
    const std::span<float> parameters = model->parameters();
    training.parameters.assign(parameters.begin(), parameters.end());
    return training;
  }

  static Training TrainRank(const Division& division, comm::Collective* comm,
                            const std::vector<int16_t>& counts, const std::vector<float>& targets) {
    SpatialRanks group(division.grid, comm->rank());
    group.Connect(comm, Soon);
    const int64_t first = comm->rank() / division.grid.size() * kBatch;
    const CosmoflowSpec spec = SpecOf(kBatch, division, division.grid);
    const cuda::HostDevice* device = nullptr;
    int64_t limit_bytes = 0;
    if (division.is_limited) {
      const auto free = Make(spec, division, &group, &device);
      limit_bytes = static_cast<int64_t>(free->model().training_bytes()) - 1;
    }
    const auto model = Make(spec, division, &group, &device, limit_bytes);
    EXPECT_EQ(model->model().recomputation().segments > 0, division.is_limited);
    if (division.devices_meet) {
      const RealClock clock;
      EXPECT_THAT(
          JoinDeviceRanks(model->reducer().device(), 1, comm, &clock, comm::testing::kPatience),
          IsOk());
      group.UseDevice(model->reducer().device());
    }
    const auto rows = targets.begin() + first * kOutputs;
    const Training training =
        Train(model.get(),
              Cut(counts, Whole(division.groups * kBatch), first, kBatch,
                  CosmoflowBlock(spec, group.place(), 0), CosmoflowBlock(spec, group.place(), 1)),
              {rows, rows + kBatch * kOutputs}, comm);
    if (division.devices_meet) {
      EXPECT_GT(device->exchanges(), 0);
      EXPECT_EQ(device->graphs(), 2) << "gradients, update";
      EXPECT_EQ(device->launches(), 2 * (kSteps - 1)) << "nothing in between went through the host";
    }
    EXPECT_THAT(comm->Close(Soon()), IsOk());
    return training;
  }
};

TEST_P(CosmoflowSpatialTest, EqualsOneProcessForSeveralSteps) {
  const Division& division = GetParam();
  const int64_t batch = division.groups * kBatch;
  const std::vector<int16_t> counts = RandomCounts(Whole(batch));
  const std::vector<double> wide = RandomNumbers(static_cast<size_t>(batch * kOutputs), 2);
  const std::vector<float> targets(wide.begin(), wide.end());
  const cuda::HostDevice* device = nullptr;
  const auto whole = Make(SpecOf(batch, division, {}), division, nullptr, &device);
  const Training expected = Train(whole.get(), counts, targets, nullptr);
  const RealClock clock;
  const auto world = comm::OpenMemoryWorld(division.ranks(), &clock);
  std::vector<Training> found(static_cast<size_t>(division.ranks()));

  OnEveryRank(world, [&](comm::Collective* comm) {
    found[static_cast<size_t>(comm->rank())] = TrainRank(division, comm, counts, targets);
  });

  // Float sums in another order; largest seen: see docs/adr/0095.
  constexpr double kTolerance = 1e-5;
  std::vector<float> losses(kSteps, 0);
  double error = 0;
  for (const Training& training : found) {
    for (size_t step = 0; step < kSteps; ++step)
      losses[step] += training.losses[step] / static_cast<float>(division.ranks());
    error += training.error / division.grid.size();
    EXPECT_EQ(training.parameters, found[0].parameters) << "the ranks have drifted apart";
  }
  RecordProperty("gradients", absl::StrCat(Difference(found[0].gradients, expected.gradients)));
  RecordProperty("parameters", absl::StrCat(Difference(found[0].parameters, expected.parameters)));
  EXPECT_LE(Difference(found[0].gradients, expected.gradients), kTolerance);
  EXPECT_LE(Difference(found[0].parameters, expected.parameters), kTolerance);
  EXPECT_LE(Difference(losses, expected.losses), kTolerance);
  EXPECT_NEAR(error, expected.error, kTolerance * expected.error);
}

INSTANTIATE_TEST_SUITE_P(
    Divisions, CosmoflowSpatialTest,
    ::testing::ValuesIn(BothKernels({{{{2, 1}}}, {{{1, 2}}}, {{{2, 2}}}, {{{2, 2}}, 2}})), NameOf);

INSTANTIATE_TEST_SUITE_P(
    OnDevice, CosmoflowSpatialTest,
    ::testing::Values(
        Division{.grid = {{2, 2}}, .on_device = true},
        Division{.grid = {{2, 2}}, .kernel = 2, .on_device = true},
        Division{.grid = {{2, 2}}, .on_device = true, .devices_meet = true},
        Division{.grid = {{2, 2}}, .on_device = true, .devices_meet = true, .is_limited = true},
        Division{
            .grid = {{2, 1}}, .groups = 2, .kernel = 2, .on_device = true, .devices_meet = true}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(Limited, CosmoflowSpatialTest,
                         ::testing::Values(Division{.grid = {{2, 1}}, .is_limited = true}), NameOf);

// All members of a group drop out the same, whatever their rank.
TEST(SpatialDropoutTest, MembersOfAGroupPredictTheSame) {
  const CosmoflowSpec spec = {
      .batch = 1, .cube_edge = 64, .base_filters = 2, .dropout = 0.5, .grid = {{2, 1}}};
  const RealClock clock;
  const auto world = comm::OpenMemoryWorld(4, &clock);
  std::vector<std::vector<float>> predictions(4);

  OnEveryRank(world, [&](comm::Collective* comm) {
    SpatialRanks group(spec.grid, comm->rank());
    group.Connect(comm, Soon);
    auto backend = MakeBackend("onednn");
    ASSERT_THAT(backend, IsOk());
    const auto model =
        MakeTrainable({.cosmoflow = spec,
                       .options = {.seed = 9, .rank = static_cast<uint32_t>(comm->rank() / 2)},
                       .group = &group},
                      *std::move(backend));
    ASSERT_THAT(model, IsOk());
    const Shape shape = {1, 64, 64, 64, 4};
    const std::vector<int16_t> voxels =
        Cut(RandomCounts(shape), shape, 0, 1, CosmoflowBlock(spec, group.place(), 0),
            CosmoflowBlock(spec, group.place(), 1));
    const std::vector<float> targets(4, 0.5F);
    const auto loss = (*model)->TrainStep(MakeBatch(voxels, targets), {}, 0,
                                          [](std::span<float>) { return absl::OkStatus(); });
    EXPECT_THAT(loss, IsOk());
    predictions[static_cast<size_t>(comm->rank())].assign((*model)->predictions().begin(),
                                                          (*model)->predictions().end());
    EXPECT_THAT(comm->Close(Soon()), IsOk());
  });

  EXPECT_EQ(predictions[0], predictions[1]);
  EXPECT_EQ(predictions[2], predictions[3]);
  EXPECT_NE(predictions[0], predictions[2]) << "the groups must differ";
}

}  // namespace
}  // namespace assay
