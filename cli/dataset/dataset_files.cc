#include "cli/dataset/dataset_files.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/dataset/pack.h"
#include "common/dataset/plain_dataset.h"
#include "common/dataset/shards.h"
#include "common/dataset/verify.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kSamplesMax = 100'000'000;
constexpr int64_t kShardMib = 256;

dataset::ProgressCallback Drawn(ProgressLine* line, const Context* context, std::string what) {
  constexpr int kFileBarWidth = 24;
  return [line, context, what = std::move(what)](const dataset::Progress& progress) {
    line->Draw(absl::StrCat(what, " ",
                            ProgressBar(progress.files, progress.files_total, kFileBarWidth,
                                        context->style().is_utf8()),
                            " ", progress.files, "/", progress.files_total, " files, ",
                            FormatBytes(static_cast<double>(progress.bytes))));
  };
}

Json ManifestJson(const std::string& directory, const dataset::Manifest& manifest) {
  Json json = {
      {"id", manifest.name},
      {"benchmark", manifest.benchmark},
      {"path", directory},
      {"train_samples", manifest.train_samples},
      {"eval_samples", manifest.validation_samples},
      {"compression", manifest.compression == dataset::Compression::kGzip ? "gzip" : "none"},
      {"bytes", dataset::TotalBytes(manifest)},
      {"digest", dataset::DatasetDigest(manifest)}};
  for (const auto& [name, value] : dataset::SampleParameters(manifest))
    json[name] = value;
  return json;
}

// What both benchmarks' options say alike.
template <typename Spec>
absl::Status FillSpec(const Arguments& arguments, Spec* spec) {
  if (arguments.Has("name")) spec->name = arguments.Get("name");
  ASSIGN_OR_RETURN(const int64_t seed, arguments.Integer("seed", 0));
  spec->parameters.seed = static_cast<uint64_t>(seed);
  ASSIGN_OR_RETURN(spec->train_samples, arguments.Integer("train", 0));
  ASSIGN_OR_RETURN(spec->validation_samples, arguments.Integer("eval", 0));
  for (const int64_t samples : {spec->train_samples, spec->validation_samples})
    if (samples < 0 || samples > kSamplesMax)
      return absl::InvalidArgumentError(
          absl::StrCat("--train, --eval: 0 to ", kSamplesMax, " samples"));
  return absl::OkStatus();
}

absl::StatusOr<dataset::CosmoDatasetSpec> CosmoSpec(const Arguments& arguments) {
  dataset::CosmoDatasetSpec spec;
  RETURN_IF_ERROR(FillSpec(arguments, &spec));
  ASSIGN_OR_RETURN(spec.parameters.mode, dataset::ParseCosmoMode(arguments.Get("mode")));
  ASSIGN_OR_RETURN(const int64_t edge, arguments.Integer("edge", 32));
  if (edge < 32 || edge > 128)
    return absl::InvalidArgumentError("--edge: a cube has 32, 64, 96 or 128 voxels a side");
  spec.parameters.edge = static_cast<int>(edge);
  if (arguments.Get("compression") == "gzip") spec.compression = dataset::Compression::kGzip;
  return spec;
}

absl::StatusOr<dataset::ClimateDatasetSpec> ClimateSpec(const Arguments& arguments) {
  dataset::ClimateDatasetSpec spec;
  RETURN_IF_ERROR(FillSpec(arguments, &spec));
  ASSIGN_OR_RETURN(const int64_t height, arguments.Integer("height", 96));
  ASSIGN_OR_RETURN(const int64_t width, arguments.Integer("width", 144));
  if (height < 32 || height > 768 || width < 32 || width > 1152)
    return absl::InvalidArgumentError(
        "--height, --width: multiples of 16 from 32 up to 768 and 1152");
  spec.parameters.extents = {static_cast<int>(height), static_cast<int>(width)};
  return spec;
}

absl::Status ShowManifest(Context* context, const std::string& directory,
                          const dataset::Manifest& manifest) {
  RETURN_IF_ERROR(context->printer().Show({.schema = "assay.dataset/v1",
                                           .value = ManifestJson(directory, manifest),
                                           .fields = DatasetFields()}));
  context->Note(absl::StrCat("next: assay dataset add ", manifest.name, " ", directory));
  return absl::OkStatus();
}

absl::StatusOr<ExitStatus> RunGenerate(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", DefaultThreads()));
  const std::string directory = context->env().AbsolutePath(arguments.Get("DIR"));
  dataset::Manifest manifest;
  if (arguments.Get("benchmark") == "deepcam") {
    ASSIGN_OR_RETURN(const dataset::ClimateDatasetSpec spec, ClimateSpec(arguments));
    ASSIGN_OR_RETURN(manifest, Generate(*context, directory, spec, static_cast<int>(threads)));
  } else {
    ASSIGN_OR_RETURN(const dataset::CosmoDatasetSpec spec, CosmoSpec(arguments));
    ASSIGN_OR_RETURN(manifest, Generate(*context, directory, spec, static_cast<int>(threads)));
  }
  RETURN_IF_ERROR(ShowManifest(context, directory, manifest));
  return ExitStatus::kDone;
}

absl::StatusOr<std::optional<int64_t>> OptionalCount(const Arguments& arguments, const char* name) {
  if (!arguments.Has(name)) return std::nullopt;
  ASSIGN_OR_RETURN(const int64_t count, arguments.Integer(name, 0));
  return count;
}

absl::StatusOr<ExitStatus> RunDatasetImport(Context* context, const Arguments& arguments) {
  const std::string directory = context->env().AbsolutePath(arguments.Get("DIR"));
  ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", DefaultThreads()));
  dataset::PlainImport import{.name = arguments.Get("name"),
                              .benchmark = arguments.Get("benchmark")};
  if (import.name.empty()) import.name = import.benchmark;
  ASSIGN_OR_RETURN(import.train_samples, OptionalCount(arguments, "train"));
  ASSIGN_OR_RETURN(import.validation_samples, OptionalCount(arguments, "eval"));
  ProgressLine line(context);
  ASSIGN_OR_RETURN(const dataset::Manifest manifest,
                   dataset::ImportPlainDataset(directory, import, static_cast<int>(threads),
                                               Drawn(&line, context, "reading")));
  line.Clear();
  RETURN_IF_ERROR(ShowManifest(context, directory, manifest));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunDatasetVerify(Context* context, const Arguments& arguments) {
  std::string directory = context->env().AbsolutePath(arguments.Get("DIR"));
  ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", DefaultThreads()));
  ASSIGN_OR_RETURN(const dataset::Manifest manifest, dataset::LoadManifest(directory));
  ProgressLine line(context);
  ASSIGN_OR_RETURN(const std::vector<dataset::Problem> problems,
                   dataset::VerifyDataset(directory, static_cast<int>(threads),
                                          Drawn(&line, context, "verifying")));
  line.Clear();
  ListView view{.schema = "assay.dataset_problem/v1",
                .columns = {{"FILE", "file"},
                            {"OFFSET", "offset", Format::kNumber},
                            {"PROBLEM", "problem"},
                            {"REMEDY", "remedy", Format::kText, 1}}};
  for (const dataset::Problem& problem : problems) {
    Json item = {{"file", problem.file}, {"problem", problem.problem}, {"remedy", problem.remedy}};
    if (problem.offset.has_value()) item["offset"] = *problem.offset;
    view.items.push_back(item);
  }
  if (context->printer().IsStructured() || !problems.empty())
    RETURN_IF_ERROR(context->printer().List(view));
  if (!problems.empty()) {
    context->Note(absl::StrCat(problems.size(), " problems in ", directory));
    return ExitStatus::kFailed;
  }
  context->Note(absl::StrCat(context->style().Mark(Tone::kGood), " every byte of ",
                             manifest.files.size(), " files is as the manifest says (digest ",
                             dataset::DatasetDigest(manifest).substr(0, 12), ")"));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunDatasetPack(Context* context, const Arguments& arguments) {
  const std::string directory = context->env().AbsolutePath(arguments.Get("DIR"));
  const std::string target = context->env().AbsolutePath(arguments.Get("TARGET"));
  ASSIGN_OR_RETURN(const dataset::Manifest manifest, dataset::LoadManifest(directory));
  dataset::PackOptions options;
  const std::string codec = arguments.Get("codec");
  // What is compressed already grows no smaller.
  const bool is_plain = manifest.compression == dataset::Compression::kNone;
  if (codec == "zstd" || (codec.empty() && is_plain)) options.codec = dataset::ShardCodec::kZstd;
  if (codec == "gzip") options.codec = dataset::ShardCodec::kGzip;
  ASSIGN_OR_RETURN(const int64_t mebibytes, arguments.Integer("shard-mib", kShardMib));
  options.shard_bytes = mebibytes << 20;
  ASSIGN_OR_RETURN(const int64_t parts, arguments.Integer("parts", 1));
  options.parts = static_cast<int>(parts);
  ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", DefaultThreads()));
  options.threads = static_cast<int>(threads);
  ProgressLine line(context);
  ASSIGN_OR_RETURN(
      const dataset::Packed packed,
      dataset::PackDataset(directory, target, options, Drawn(&line, context, "packing")));
  line.Clear();
  RETURN_IF_ERROR(context->printer().Show({.schema = "assay.dataset-shards/v1",
                                           .value = {{"path", target},
                                                     {"shards", packed.shards},
                                                     {"bytes", packed.bytes_before},
                                                     {"packed_bytes", packed.bytes_after},
                                                     {"digest", dataset::DatasetDigest(manifest)}},
                                           .fields = {{"path", "path"},
                                                      {"shards", "shards", Format::kNumber},
                                                      {"size", "bytes", Format::kBytes},
                                                      {"packed", "packed_bytes", Format::kBytes},
                                                      {"digest", "digest"}}}));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunDatasetIndex(Context* context, const Arguments& arguments) {
  const std::string directory = context->env().AbsolutePath(arguments.Get("DIR"));
  ASSIGN_OR_RETURN(const dataset::Manifest manifest, dataset::LoadManifest(directory));
  ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", DefaultThreads()));
  ProgressLine line(context);
  ASSIGN_OR_RETURN(const std::vector<dataset::Shard> shards,
                   dataset::ReadShards(directory, manifest, static_cast<int>(threads),
                                       Drawn(&line, context, "reading")));
  line.Clear();
  const std::string digest = dataset::DatasetDigest(manifest);
  RETURN_IF_ERROR(dataset::SaveShardIndex(directory, digest, shards));
  RETURN_IF_ERROR(context->printer().Show({.schema = "assay.dataset-index/v1",
                                           .value = {{"path", directory},
                                                     {"shards", shards.size()},
                                                     {"files", manifest.files.size()},
                                                     {"bytes", dataset::TotalBytes(manifest)},
                                                     {"digest", digest}},
                                           .fields = {{"path", "path"},
                                                      {"shards", "shards", Format::kNumber},
                                                      {"files", "files", Format::kNumber},
                                                      {"size", "bytes", Format::kBytes},
                                                      {"digest", "digest"}}}));
  return ExitStatus::kDone;
}

Positional Directory() {
  return {.name = "DIR", .help = "the dataset's folder", .completes = Completes::kDirectory};
}

Option Threads() {
  return {.name = "threads",
          .kind = Option::Kind::kInteger,
          .value = "N",
          .help = "all processors if not given",
          .min = 1,
          .max = 4096};
}

}  // namespace

const std::vector<Column>& DatasetFields() {
  static const auto* const kFields = new std::vector<Column>{{"dataset", "id"},
                                                             {"benchmark", "benchmark"},
                                                             {"path", "path"},
                                                             {"train samples", "train_samples"},
                                                             {"eval samples", "eval_samples"},
                                                             {"cube edge", "cube_edge"},
                                                             {"compression", "compression"},
                                                             {"size", "bytes", Format::kBytes},
                                                             {"digest", "digest"}};
  return *kFields;
}

int DefaultThreads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

absl::StatusOr<dataset::Manifest> Generate(const Context& context, const std::string& directory,
                                           const dataset::CosmoDatasetSpec& spec, int threads) {
  ProgressLine line(&context);
  return dataset::GenerateCosmoDataset(directory, spec, threads,
                                       Drawn(&line, &context, "generating"));
}

absl::StatusOr<dataset::Manifest> Generate(const Context& context, const std::string& directory,
                                           const dataset::ClimateDatasetSpec& spec, int threads) {
  ProgressLine line(&context);
  return dataset::GenerateClimateDataset(directory, spec, threads,
                                         Drawn(&line, &context, "generating"));
}

Command DatasetGenerateCommand() {
  using Kind = Option::Kind;
  return {
      .path = "dataset generate",
      .summary = "make a synthetic dataset in the real format",
      .description =
          "The same options make the same bytes, everywhere. Interrupted, it goes on "
          "where it stopped.",
      .positionals = {Directory()},
      .options = {{.name = "train",
                   .kind = Kind::kInteger,
                   .value = "N",
                   .help = "samples to train on",
                   .is_required = true},
                  {.name = "eval",
                   .kind = Kind::kInteger,
                   .value = "N",
                   .help = "samples to evaluate on",
                   .is_required = true},
                  {.name = "benchmark",
                   .kind = Kind::kChoice,
                   .value = "NAME",
                   .help = "cosmoflow (cubes) or deepcam (climate maps)",
                   .choices = {"cosmoflow", "deepcam"},
                   .fallback = "cosmoflow"},
                  {.name = "height",
                   .kind = Kind::kInteger,
                   .value = "PIXELS",
                   .help = "of a climate map: a multiple of 16 up to 768",
                   .fallback = "96"},
                  {.name = "width",
                   .kind = Kind::kInteger,
                   .value = "PIXELS",
                   .help = "of a climate map: a multiple of 16 up to 1152",
                   .fallback = "144"},
                  {.name = "edge",
                   .kind = Kind::kInteger,
                   .value = "VOXELS",
                   .help = "side of a cube: 32, 64, 96 or 128",
                   .fallback = "32"},
                  {.name = "mode",
                   .kind = Kind::kText,
                   .value = "MODE",
                   .help = "lognormal, zeldovich, beacon or shuffled",
                   .fallback = "lognormal"},
                  {.name = "seed",
                   .kind = Kind::kInteger,
                   .value = "N",
                   .help = "another seed, other cubes",
                   .fallback = "0",
                   .max = std::numeric_limits<int64_t>::max()},
                  {.name = "compression",
                   .kind = Kind::kChoice,
                   .value = "KIND",
                   .help = "gzip or none",
                   .choices = {"gzip", "none"},
                   .fallback = "none"},
                  {.name = "name",
                   .kind = Kind::kText,
                   .value = "NAME",
                   .help = "stands in its manifest; cosmosyn or camsyn if not given"},
                  Threads()},
      .examples = {{"assay dataset generate /data/cosmo32 --train 2048 --eval 256", ""},
                   {"assay dataset generate /data/cam96 --benchmark deepcam --train 512 --eval 64",
                    ""}},
      .run = RunGenerate};
}

Command DatasetImportCommand() {
  using Kind = Option::Kind;
  return {.path = "dataset import",
          .summary = "describe files that another program made, for a benchmark of a round's own",
          .description =
              "Writes manifest.json with size and SHA-256 of every file in DIR/train, "
              "DIR/validation and DIR itself. Each file of the two folders is a sample, "
              "unless --train and --eval say how many samples they hold.",
          .positionals = {Directory()},
          .options = {{.name = "benchmark",
                       .kind = Kind::kText,
                       .value = "NAME",
                       .help = "as the round's file declares it",
                       .is_required = true},
                      {.name = "train",
                       .kind = Kind::kInteger,
                       .value = "N",
                       .help = "samples to train on; one for each file if not given"},
                      {.name = "eval",
                       .kind = Kind::kInteger,
                       .value = "N",
                       .help = "samples to evaluate on; likewise"},
                      {.name = "name",
                       .kind = Kind::kText,
                       .value = "NAME",
                       .help = "stands in its manifest; the benchmark's if not given"},
                      Threads()},
          .examples = {{"assay dataset import /data/shapes --benchmark shapes", ""},
                       {"assay dataset import /data/words --benchmark words --train 250000 "
                        "--eval 65536",
                        "few files with many samples"}},
          .run = RunDatasetImport};
}

Command DatasetVerifyCommand() {
  return {.path = "dataset verify",
          .summary = "compare a dataset with its manifest, byte by byte",
          .positionals = {Directory()},
          .options = {Threads()},
          .examples = {{"assay dataset verify /data/cosmo32", "exit 1 if a byte differs"}},
          .run = RunDatasetVerify};
}

Command DatasetPackCommand() {
  using Kind = Option::Kind;
  return {
      .path = "dataset pack",
      .summary = "write a dataset as tar archives, for nodes to stage from",
      .description =
          "TARGET gets manifest.json, shards/ and shards.json, which says what lies where: for "
          "file "
          "systems on which opening each file takes the time. Registered ('assay dataset add'), it "
          "is a dataset that runs stage to their nodes, with staging = \"node\"; 'assay dataset "
          "stage' fills nodes' caches from it. A node reads each archive that has any of its "
          "samples: --parts, the number of ranks or a multiple, keeps those of a rank together.",
      .positionals = {Directory(),
                      {.name = "TARGET",
                       .help = "the archives' folder",
                       .completes = Completes::kDirectory}},
      .options = {{.name = "codec",
                   .kind = Kind::kChoice,
                   .value = "NAME",
                   .help = "zstd, gzip or none; if not given zstd, but none for compressed files",
                   .choices = {"zstd", "gzip", "none"}},
                  {.name = "shard-mib",
                   .kind = Kind::kInteger,
                   .value = "MIB",
                   .help = "files of one archive together; 256 if not given",
                   .min = 1,
                   .max = 65536},
                  {.name = "parts",
                   .kind = Kind::kInteger,
                   .value = "N",
                   .help = "every N-th sample of a split in archives of its own; 1 if not given",
                   .min = 1,
                   .max = 65536},
                  Threads()},
      .examples = {{"assay dataset pack /data/cosmo32 /data/cosmo32-shards", ""},
                   {"assay dataset pack /data/cosmo32 /data/cosmo32-shards --parts 64",
                    "for runs of 64, 32, 16, ... ranks"}},
      .run = RunDatasetPack};
}

Command DatasetIndexCommand() {
  return {.path = "dataset index",
          .summary = "read archives that other programs made, and write what lies where",
          .description =
              "Reads DIR/shards, compares every member with DIR/manifest.json, byte by "
              "byte, and writes DIR/shards.json, without which no run stages from "
              "archives. 'assay dataset pack' writes it, too.",
          .positionals = {Directory()},
          .options = {Threads()},
          .examples = {{"assay dataset index /data/cosmo32-shards", ""}},
          .run = RunDatasetIndex};
}

}  // namespace assay::cli
