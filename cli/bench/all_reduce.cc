#include "cli/bench/all_reduce.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "assay/v1/fabric.pb.h"

#include "cli/bench/mpi.h"
#include "cli/command/context.h"
#include "cli/command/share.h"
#include "cli/terminal/plot.h"
#include "common/file.h"
#include "common/process.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kVectorBytesMax = int64_t{1} << 30;
constexpr char kDefaultSizes[] = "4,1KiB,16KiB,256KiB,1MiB,4MiB,16MiB,64MiB";
constexpr absl::Duration kPatience = absl::Minutes(5);

// Where rank 0 awaits the others: a port of the loopback device that listens already.
struct Listener {
  UniqueFd fd;
  std::string address;
};

absl::StatusOr<Listener> Listen() {
  Listener listener{UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!listener.fd.is_open() || bind(listener.fd.get(), generic, size) != 0 ||
      listen(listener.fd.get(), SOMAXCONN) != 0 ||
      getsockname(listener.fd.get(), generic, &size) != 0)
    return absl::ErrnoToStatus(errno, "listening on the loopback device");
  listener.address = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  return listener;
}

class Ranks {
 public:
  Ranks(std::string program, std::string directory, int count)
      : program_(std::move(program)), directory_(std::move(directory)), count_(count) {}
  ~Ranks() {
    for (const ProcessId& rank : processes_)
      if (IsRunning(rank)) StopGroup(rank, absl::ZeroDuration()).IgnoreError();
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  absl::Status Start(const std::vector<int64_t>& sizes) {
    ASSIGN_OR_RETURN(const Listener listener, Listen());
    v1::FabricSpec spec;
    spec.set_name("bench");
    spec.set_node_count(count_);
    spec.set_rendezvous_address(listener.address);
    spec.set_token(absl::BytesToHexString(RandomBytes(16)));
    spec.mutable_time_limit()->set_seconds(absl::ToInt64Seconds(kPatience));
    for (int rank = 0; rank < count_; ++rank) {
      spec.set_rank(rank);
      spec.set_rendezvous_listener(rank == 0 ? kInheritedFd : 0);
      const std::string path = PathOf("spec", rank);
      RETURN_IF_ERROR(WriteFileAtomic(path, spec.SerializeAsString()));
      ASSIGN_OR_RETURN(
          const ProcessId process,
          Spawn({.argv = {program_, absl::StrCat("--all_reduce=", absl::StrJoin(sizes, ",")), path},
                 .output_path = PathOf("output", rank),
                 .inherited_fd = rank == 0 ? listener.fd.get() : -1}));
      processes_.push_back(process);
    }
    return absl::OkStatus();
  }

  // What rank 0 has printed.
  absl::StatusOr<std::string> Finish() {
    for (int rank = 0; rank < count_; ++rank) {
      ASSIGN_OR_RETURN(const int code,
                       WaitForExit(processes_[static_cast<size_t>(rank)], kPatience));
      if (code == 0) continue;
      return absl::UnavailableError(
          absl::StrCat("rank ", rank, " has ended with ", code, ": ",
                       absl::StripAsciiWhitespace(ReadFile(PathOf("output", rank)).value_or(""))));
    }
    return ReadFile(PathOf("output", 0));
  }

 private:
  std::string PathOf(absl::string_view what, int rank) const {
    return JoinPath(directory_, absl::StrCat(what, rank));
  }

  const std::string program_;
  const std::string directory_;
  const int count_;
  std::vector<ProcessId> processes_;
};

// Lines "BYTES MICROSECONDS", among which the log of the rank may be.
Json ReadTimes(absl::string_view text, int ranks) {
  Json items = Json::array();
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, ' ');
    int64_t bytes = 0;
    double us = 0;
    if (!absl::SimpleAtoi(parts.first, &bytes) || !absl::SimpleAtod(parts.second, &us) || us <= 0)
      continue;
    // What each rank must send at least: 2 (n - 1) / n of the vector.
    const double sent = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes);
    Json item;
    item["bytes"] = bytes;
    item["time_us"] = us;
    item["bus_gb_per_s"] = sent / us / 1e3;
    items.push_back(std::move(item));
  }
  return items;
}

// Ours beside those of MPI: a ratio above 1 is in our favour.
void AddMpi(const MpiTimes& mpi, Json* items) {
  for (Json& item : *items) {
    const double us = mpi.time_us.at(item["bytes"].get<int64_t>());
    item["mpi_time_us"] = us;
    item["mpi_ratio"] = us / item["time_us"].get<double>();
  }
}

Figure FigureOf(const Json& items, int ranks) {
  std::string rows;
  for (const Json& item : items)
    absl::StrAppend(&rows, item["bytes"].dump(), " ", item["bus_gb_per_s"].dump(), "\n");
  return {.commands =
              absl::StrCat("set logscale x 2\nset format x '%.0b %BB'\nset xlabel 'bytes'\nset "
                           "ylabel 'bus bandwidth, GB/s'\n"
                           "set yrange [0:*]\nset grid\nunset key\nset title ",
                           PlotText(absl::StrFormat("all-reduce of %d ranks on one host", ranks)),
                           "\n$data << EOD\n", rows, "EOD\nplot $data with linespoints pt 7\n")};
}

absl::Status Show(Context* context, Json items, const std::string& mpi_library) {
  ListView list = {.schema = "assay.bench_allreduce/v1",
                   .items = std::move(items),
                   .columns = {{"BYTES", "bytes"},
                               {"MICROSECONDS", "time_us", Format::kNumber},
                               {"GB/S", "bus_gb_per_s", Format::kNumber}},
                   .empty_text = "nothing was measured"};
  if (!mpi_library.empty()) {
    list.columns.push_back({"MPI", "mpi_time_us", Format::kNumber});
    list.columns.push_back({"MPI/OURS", "mpi_ratio", Format::kNumber});
  }
  RETURN_IF_ERROR(context->printer().List(list));
  const std::vector<std::string> load =
      absl::StrSplit(ReadFile("/proc/loadavg").value_or("?"), absl::MaxSplits(' ', 1));
  if (!mpi_library.empty()) context->Note(absl::StrCat("MPI: microseconds of ", mpi_library));
  context->Note(absl::StrCat(
      "medians; GB/s of the bus: 2 (n - 1) / n of the vector a second; load average ", load[0]));
  return absl::OkStatus();
}

absl::StatusOr<ExitStatus> RunAllReduce(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t count, arguments.Integer("ranks", 2));
  const auto ranks = static_cast<int>(count);
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ParseVectorSizes(arguments.Get("bytes")));
  ASSIGN_OR_RETURN(std::string program, SiblingProgram(context->env(), "assay-train"));
  std::string directory = (std::filesystem::temp_directory_path() / "assay_bench_XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr)
    return absl::ErrnoToStatus(errno, absl::StrCat("making ", directory));
  const auto remove = absl::MakeCleanup([&] { RemoveTree(directory).IgnoreError(); });
  // First, since it may not be there.
  MpiTimes mpi;
  if (arguments.Has("mpi")) {
    ASSIGN_OR_RETURN(mpi, MeasureMpi(context->env(), ranks, sizes, directory, kPatience));
  }
  Json items;
  {
    Ranks processes(std::move(program), directory, ranks);
    RETURN_IF_ERROR(processes.Start(sizes));
    ASSIGN_OR_RETURN(const std::string printed, processes.Finish());
    items = ReadTimes(printed, ranks);
  }
  if (arguments.Has("mpi")) AddMpi(mpi, &items);
  if (arguments.Has("plot")) {
    RETURN_IF_ERROR(Draw(context->env(), FigureOf(items, ranks),
                         context->env().AbsolutePath(arguments.Get("plot"))));
    context->Note(absl::StrCat("written: ", arguments.Get("plot")));
  }
  RETURN_IF_ERROR(Show(context, std::move(items), mpi.library));
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
                       .help = "processes",
                       .fallback = "2",
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
                      {.name = "plot",
                       .kind = Option::Kind::kText,
                       .value = "FILE",
                       .help = "also draw the bandwidth, as .svg, .png or .pdf",
                       .completes = Completes::kFile}},
          .examples = {{"assay bench allreduce", ""},
                       {"assay bench allreduce --ranks 8 --bytes 34MiB --json", ""},
                       {"assay bench allreduce --mpi", "beside the site's MPI"},
                       {"MPIEXEC='srun --mpi=pmix' assay bench allreduce --mpi", ""},
                       {"UCX_TLS=tcp,self assay bench allreduce", "by TCP"}},
          .run = RunAllReduce};
}

}  // namespace assay::cli
