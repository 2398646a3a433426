#include "cli/bench/all_reduce.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "cli/bench/mpi.h"
#include "cli/bench/ranks.h"
#include "cli/command/context.h"
#include "cli/command/share.h"
#include "cli/terminal/plot.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kVectorBytesMax = int64_t{1} << 30;
constexpr char kDefaultSizes[] = "4,1KiB,16KiB,256KiB,1MiB,4MiB,16MiB,64MiB";
constexpr int kDefaultRanks = 2;
constexpr absl::Duration kPatience = absl::Minutes(5);

// What was measured beside ours, or nothing.
struct Measured {
  int ranks = 2;
  VectorTimes ours;
  std::optional<MpiTimes> mpi;
  std::optional<VectorTimes> nccl;
};

// What each rank must send at least: 2 (n - 1) / n of the vector.
double BusGbPerS(int64_t bytes, double us, int ranks) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) / us / 1e3;
}

// A ratio above 1 is in our favour.
Json ItemsOf(const Measured& measured, const std::vector<int64_t>& sizes) {
  Json items = Json::array();
  for (const int64_t bytes : sizes) {
    const double us = measured.ours.at(bytes);
    Json item;
    item["bytes"] = bytes;
    item["time_us"] = us;
    item["bus_gb_per_s"] = BusGbPerS(bytes, us, measured.ranks);
    if (measured.mpi.has_value()) {
      const double mpi_us = measured.mpi->time_us.at(bytes);
      item["mpi_time_us"] = mpi_us;
      item["mpi_bus_gb_per_s"] = BusGbPerS(bytes, mpi_us, measured.ranks);
      item["mpi_ratio"] = mpi_us / us;
    }
    if (measured.nccl.has_value()) {
      const double nccl_us = measured.nccl->at(bytes);
      item["nccl_time_us"] = nccl_us;
      item["nccl_bus_gb_per_s"] = BusGbPerS(bytes, nccl_us, measured.ranks);
    }
    items.push_back(std::move(item));
  }
  return items;
}

Figure FigureOf(const Json& items, const Measured& measured) {
  std::vector<std::pair<std::string, std::string>> series = {{"bus_gb_per_s", "Assay"}};
  if (measured.mpi.has_value()) series.emplace_back("mpi_bus_gb_per_s", "MPI");
  if (measured.nccl.has_value()) series.emplace_back("nccl_bus_gb_per_s", "NCCL");
  std::string rows;
  std::vector<std::string> lines;
  for (const Json& item : items) {
    absl::StrAppend(&rows, item["bytes"].dump());
    for (const auto& [key, name] : series)
      absl::StrAppend(&rows, " ", item[key].dump());
    absl::StrAppend(&rows, "\n");
  }
  for (size_t i = 0; i < series.size(); ++i)
    lines.push_back(absl::StrCat("$data using 1:", i + 2, " with linespoints pt 7 title ",
                                 PlotText(series[i].second)));
  return {.commands = absl::StrCat(
              "set logscale x 2\nset format x '%.0b %BB'\nset xlabel 'bytes'\nset "
              "ylabel 'bus bandwidth, GB/s'\n"
              "set yrange [0:*]\nset grid\nset key left top\nset title ",
              PlotText(absl::StrFormat("all-reduce of %d ranks on one host", measured.ranks)),
              "\n$data << EOD\n", rows, "EOD\nplot ", absl::StrJoin(lines, ", "), "\n")};
}

absl::Status Show(Context* context, Json items, const Measured& measured) {
  ListView list = {.schema = "assay.bench_allreduce/v1",
                   .items = std::move(items),
                   .columns = {{"BYTES", "bytes"},
                               {"MICROSECONDS", "time_us", Format::kNumber},
                               {"GB/S", "bus_gb_per_s", Format::kNumber}},
                   .empty_text = "nothing was measured"};
  if (measured.mpi.has_value()) {
    list.columns.push_back({"MPI", "mpi_time_us", Format::kNumber});
    list.columns.push_back({"MPI/OURS", "mpi_ratio", Format::kNumber});
  }
  if (measured.nccl.has_value()) {
    list.columns.push_back({"NCCL", "nccl_time_us", Format::kNumber});
    list.columns.push_back({"NCCL GB/S", "nccl_bus_gb_per_s", Format::kNumber});
  }
  RETURN_IF_ERROR(context->printer().List(list));
  const std::vector<std::string> load =
      absl::StrSplit(ReadFile("/proc/loadavg").value_or("?"), absl::MaxSplits(' ', 1));
  if (measured.mpi.has_value())
    context->Note(absl::StrCat("MPI: microseconds of ", measured.mpi->library));
  if (measured.nccl.has_value())
    context->Note(absl::StrCat("NCCL: microseconds of means in the memory of ", measured.ranks,
                               " GPUs, one for each rank"));
  context->Note(absl::StrCat(
      "medians; GB/s of the bus: 2 (n - 1) / n of the vector a second; load average ", load[0]));
  return absl::OkStatus();
}

// With --nccl one for each GPU, if nothing is said.
absl::StatusOr<int> RanksOf(const Arguments& arguments, const std::string& program,
                            const std::string& directory) {
  ASSIGN_OR_RETURN(const int64_t asked, arguments.Integer("ranks", kDefaultRanks));
  if (!arguments.Has("nccl")) return static_cast<int>(asked);
  ASSIGN_OR_RETURN(const int gpus, CountGpus(program, directory));
  if (gpus < 2)
    return absl::FailedPreconditionError(
        "--nccl: this process sees one GPU and averages take two; CUDA_VISIBLE_DEVICES says which "
        "it sees");
  if (!arguments.Has("ranks")) return gpus;
  if (asked <= gpus) return static_cast<int>(asked);
  return absl::InvalidArgumentError(
      absl::StrCat("--ranks ", asked, ": with --nccl each rank has a GPU, and this host has ", gpus,
                   "; ask for ", gpus, " at most or leave --nccl out"));
}

// First what may not be there.
absl::StatusOr<Measured> Measure(Context* context, const Arguments& arguments,
                                 const std::vector<int64_t>& sizes, const std::string& directory) {
  RanksToTime ranks;
  ranks.directory = directory;
  ranks.patience = kPatience;
  ASSIGN_OR_RETURN(ranks.program, SiblingProgram(context->env(), "assay-train"));
  ASSIGN_OR_RETURN(ranks.count, RanksOf(arguments, ranks.program, directory));
  Measured measured;
  measured.ranks = ranks.count;
  if (arguments.Has("nccl")) {
    ranks.on_gpus = true;
    ASSIGN_OR_RETURN(measured.nccl, TimeRanks(ranks, sizes));
    ranks.on_gpus = false;
  }
  if (arguments.Has("mpi")) {
    ASSIGN_OR_RETURN(measured.mpi,
                     MeasureMpi(context->env(), ranks.count, sizes, directory, kPatience));
  }
  ASSIGN_OR_RETURN(measured.ours, TimeRanks(ranks, sizes));
  return measured;
}

absl::StatusOr<ExitStatus> RunAllReduce(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ParseVectorSizes(arguments.Get("bytes")));
  std::string directory = (std::filesystem::temp_directory_path() / "assay_bench_XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr)
    return absl::ErrnoToStatus(errno, absl::StrCat("making ", directory));
  const auto remove = absl::MakeCleanup([&] { RemoveTree(directory).IgnoreError(); });
  ASSIGN_OR_RETURN(const Measured measured, Measure(context, arguments, sizes, directory));
  Json items = ItemsOf(measured, sizes);
  if (arguments.Has("plot")) {
    RETURN_IF_ERROR(Draw(context->env(), FigureOf(items, measured),
                         context->env().AbsolutePath(arguments.Get("plot"))));
    context->Note(absl::StrCat("written: ", arguments.Get("plot")));
  }
  RETURN_IF_ERROR(Show(context, std::move(items), measured));
  return ExitStatus::kDone;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParseVectorSizes(absl::string_view text) {
  std::vector<int64_t> sizes;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    absl::string_view digits = absl::StripAsciiWhitespace(word);
    int64_t unit = 1;
    if (absl::ConsumeSuffix(&digits, "KiB")) unit = int64_t{1} << 10;
    if (absl::ConsumeSuffix(&digits, "MiB")) unit = int64_t{1} << 20;
    if (absl::ConsumeSuffix(&digits, "GiB")) unit = int64_t{1} << 30;
    int64_t count = 0;
    const bool is_size = absl::SimpleAtoi(digits, &count) && count >= 1 &&
                         count <= kVectorBytesMax / unit && count * unit % 4 == 0;
    if (!is_size)
      return absl::InvalidArgumentError(
          absl::StrCat("--bytes: \"", word,
                       "\" is no size of a float32 vector: a multiple of 4 "
                       "up to 1GiB, as 4, 16KiB or 64MiB"));
    sizes.push_back(count * unit);
  }
  return sizes;
}

Command AllReduceCommand() {
  return {.path = "bench allreduce",
          .summary = "measure sums over ranks of this host, as training makes them",
          .description =
              "Starts ranks as processes and sums float32 vectors of each size in "
              "place: through memory that the ranks share, or as UCX_TLS has it. Nodes "
              "of a gang are measured before a set of runs, over their fabric.",
          .options = {{.name = "ranks",
                       .kind = Option::Kind::kInteger,
                       .value = "N",
                       .help = "processes (default: 2, with --nccl one for each GPU)",
                       .min = 2,
                       .max = 128},
                      {.name = "bytes",
                       .kind = Option::Kind::kText,
                       .value = "SIZES",
                       .help = "of the vectors, as 4,16KiB,64MiB",
                       .fallback = kDefaultSizes},
                      {.name = "mpi",
                       .help = "also measure this host's MPI, compiled by $MPICC (mpicc) and "
                               "started by $MPIEXEC (mpiexec)"},
                      {.name = "nccl",
                       .help = "also measure means in the memory of this host's GPUs by NCCL, a "
                               "rank on each"},
                      {.name = "plot",
                       .kind = Option::Kind::kText,
                       .value = "FILE",
                       .help = "also draw the bandwidth, as .svg, .png or .pdf",
                       .completes = Completes::kFile}},
          .examples = {{"assay bench allreduce", ""},
                       {"assay bench allreduce --ranks 8 --bytes 34MiB --json", ""},
                       {"assay bench allreduce --mpi", "beside the site's MPI"},
                       {"assay bench allreduce --nccl --plot bandwidth.svg", "on all GPUs"},
                       {"MPIEXEC='srun --mpi=pmix' assay bench allreduce --mpi", ""},
                       {"UCX_TLS=tcp,self assay bench allreduce", "by TCP"}},
          .run = RunAllReduce};
}

}  // namespace assay::cli
