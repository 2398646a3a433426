// How fast samples are made, checked and read, by one thread.

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"

#include "common/dataset/cosmo_synth.h"
#include "common/dataset/crc32c.h"
#include "common/dataset/tfrecord.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::dataset {
namespace {

void BM_Generate(benchmark::State& state) {
  const CosmoParameters parameters = {.mode = static_cast<CosmoMode>(state.range(0)),
                                      .edge = static_cast<int>(state.range(1))};
  const std::unique_ptr<CosmoSynthesizer> synthesizer =
      CosmoSynthesizer::Create(parameters).value();
  state.SetLabel(std::string(CosmoModeName(parameters.mode)));
  uint32_t index = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(synthesizer->Generate(Split::kTrain, index++));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Generate)
    ->ArgsProduct({{static_cast<int>(CosmoMode::kLognormal),
                    static_cast<int>(CosmoMode::kZeldovich), static_cast<int>(CosmoMode::kBeacon)},
                   {32, 64, 128}})
    ->Unit(benchmark::kMillisecond);

void BM_Crc32c(benchmark::State& state) {
  const std::string bytes(16777216, 'x');
  for (auto _ : state)
    benchmark::DoNotOptimize(Crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(BM_Crc32c)->Unit(benchmark::kMillisecond);

void BM_Read(benchmark::State& state) {
  const Compression compression = static_cast<Compression>(state.range(0));
  const testing::TempDir dir;
  const CosmoSample sample = CosmoSynthesizer::Create({.edge = static_cast<int>(state.range(1))})
                                 .value()
                                 ->Generate(Split::kTrain, 0);
  const std::string record = FrameRecord(EncodeCosmoSample(sample.counts, sample.targets));
  testing::WriteFile(dir.Path("a"), compression == Compression::kGzip ? Gzip(record) : record);
  RecordFile file(compression);
  for (auto _ : state)
    benchmark::DoNotOptimize(file.ReadOnly(dir.Path("a")).ok());
  state.SetLabel(std::string(CompressionName(compression)));
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(record.size()));
}
BENCHMARK(BM_Read)->ArgsProduct({{0, 1}, {32, 128}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay::dataset
