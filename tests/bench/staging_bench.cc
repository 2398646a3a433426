// Staging against `cp` and against what the storage can do, side by side in each round: on one
// disk, between a disk and memory, and from a file system that takes 5 ms for each request.
// docs/benchmarks/staging.md has the figures.
//
// Usage: staging_bench DISK MEMORY [rounds, default 5] [files, default 900] [KiB each, default
// 2048]
//   DISK: a folder on a disk; MEMORY: one on tmpfs, with room for the files twice. Both are made
//   and removed. Needs root, or the package fuse3, for the slow file system.
// Prints each measurement as it comes, and then a table in Markdown.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/dataset/parallel.h"
#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "common/sha256.h"
#include "worker/data/file_copy.h"
#include "worker/data/staging.h"

namespace assay::data {
namespace {

constexpr double kMib = 1 << 20;
constexpr double kGib = 1 << 30;
constexpr int kLatencyMs = 5;

struct Measured {
  double mib_per_s = 0;
  double cpu_s_per_gib = 0;
};

double CpuSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return seconds;
}

double Load() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

void Sync(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(syncfs(fd.get()) == 0) << path;
}

// Exits if it fails.
void Run(std::vector<std::string> argv) {
  const ProcessId child = Spawn({.argv = std::move(argv)}).value();
  CHECK(WaitForExit(child, absl::Hours(1)).value() == 0);
}

// The files to stage: equal ones in size, of bytes that do not compress.
struct Files {
  std::vector<std::string> names;
  int64_t bytes_each = 0;
  std::map<std::string, std::string> sha256;

  double bytes() const {
    return static_cast<double>(names.size()) * static_cast<double>(bytes_each);
  }
};

void Write(const std::string& folder, Files* files) {
  CHECK_OK(MakeDirectories(folder));
  std::string content(static_cast<size_t>(files->bytes_each), '\0');
  std::mt19937_64 random(1);
  for (const std::string& name : files->names) {
    for (size_t i = 0; i + sizeof(uint64_t) <= content.size(); i += sizeof(uint64_t)) {
      const uint64_t word = random();
      std::copy_n(reinterpret_cast<const char*>(&word), sizeof(word), &content[i]);
    }
    std::ofstream(JoinPath(folder, name)) << content;
    files->sha256[name] = Sha256Hex(content);
  }
  Sync(folder);
}

void ForEachFile(const Files& files, int threads,
                 absl::FunctionRef<void(int thread, const std::string& name)> body) {
  CHECK_OK(dataset::ForEachIndex(std::ssize(files.names), threads, [&](int thread, int64_t i) {
    body(thread, files.names[static_cast<size_t>(i)]);
    return absl::OkStatus();
  }));
}

// From one folder to another.
struct Scene {
  std::string name;
  std::string source;
  std::string target;
  bool is_one_device = false;
  bool is_to_memory = false;  // where nothing can be cold
};

// Takes the source out of memory, where it is on a disk, and the last copies away.
void MakeReady(const Scene& scene, const Files& files) {
  CHECK_OK(RemoveTree(scene.target));
  CHECK_OK(MakeDirectories(scene.target));
  Sync(scene.target);
  ForEachFile(files, 64, [&](int, const std::string& name) {
    const std::string path = JoinPath(scene.source, name);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) == 0) << path;
  });
}

void Stage(const Scene& scene, const Files& files, bool has_digest) {
  StagingJob job = {
      .source_dir = scene.source, .target_dir = scene.target, .is_cold = !scene.is_to_memory};
  for (const std::string& name : files.names)
    job.files.push_back({.name = name,
                         .bytes = files.bytes_each,
                         .sha256 = has_digest ? files.sha256.at(name) : ""});
  const RealClock clock;
  CHECK_OK(CheckStagingSpace(job));
  const Staged staged = StageFiles(job, &clock).value();
  absl::PrintF("    window %d, p99 of files %.0f ms\n", staged.window,
               absl::ToDoubleMilliseconds(staged.file_p99));
}

void CopyByXargs(const Scene& scene, const Files&) {
  Run({"/bin/sh", "-c",
       absl::StrCat("cd ", scene.source, " && ls | xargs -P8 -n32 cp -t ", scene.target)});
}

void CopyByCp(const Scene& scene, const Files&) {
  Run({"/bin/cp", "-r", absl::StrCat(scene.source, "/."), scene.target});
}

// Direct reads of whole files, and nothing else.
void ReadAlone(const Scene& scene, const Files& files, int threads) {
  std::vector<CopyBuffer> buffers(static_cast<size_t>(threads));
  ForEachFile(files, threads, [&](int thread, const std::string& name) {
    const std::string path = JoinPath(scene.source, name);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    const auto memory = buffers[static_cast<size_t>(thread)].bytes();
    for (int64_t done = 0; done < files.bytes_each;) {
      const ssize_t n = read(fd.get(), memory.data(), memory.size());
      CHECK(n > 0) << path;
      done += n;
    }
  });
}

// Direct writes of whole files into allocated blocks, and nothing else.
void WriteAlone(const Scene& scene, const Files& files, int threads) {
  std::vector<CopyBuffer> buffers(static_cast<size_t>(threads));
  ForEachFile(files, threads, [&](int thread, const std::string& name) {
    const std::string path = JoinPath(scene.target, name);
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0644));
    CHECK(fallocate(fd.get(), 0, 0, files.bytes_each) == 0) << path;
    const auto memory = buffers[static_cast<size_t>(thread)].bytes();
    for (int64_t done = 0; done < files.bytes_each;) {
      const size_t left = static_cast<size_t>(files.bytes_each - done);
      const ssize_t n = write(fd.get(), memory.data(), std::min(memory.size(), left));
      CHECK(n > 0) << path;
      done += n;
    }
  });
}

struct Method {
  std::string name;
  std::function<void(const Scene&, const Files&)> copy;
};

// With more at once than this none of the storages here is faster.
std::vector<Method> Methods(int threads) {
  return {
      {"cp -r", CopyByCp},
      {"xargs -P8 cp", CopyByXargs},
      {"staging", [](const Scene& s, const Files& f) { Stage(s, f, false); }},
      {"staging, SHA-256", [](const Scene& s, const Files& f) { Stage(s, f, true); }},
      {"reads alone", [threads](const Scene& s, const Files& f) { ReadAlone(s, f, threads); }},
      {"writes alone", [threads](const Scene& s, const Files& f) { WriteAlone(s, f, threads); }}};
}

// Until the copies are on the device.
Measured Measure(const Method& method, const Scene& scene, const Files& files) {
  MakeReady(scene, files);
  const double cpu = CpuSeconds();
  const absl::Time begin = absl::Now();
  method.copy(scene, files);
  Sync(scene.target);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  const Measured measured = {.mib_per_s = files.bytes() / kMib / seconds,
                             .cpu_s_per_gib = (CpuSeconds() - cpu) / files.bytes() * kGib};
  absl::PrintF("  %-30s %-18s %6.0f MiB/s  %.2f CPU-s/GiB  load %.1f\n", scene.name, method.name,
               measured.mib_per_s, measured.cpu_s_per_gib, Load());
  std::fflush(stdout);
  return measured;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

using Rounds = std::map<std::string, std::vector<Measured>>;  // of one scene, by method

std::vector<double> Rates(const std::vector<Measured>& rounds) {
  std::vector<double> rates;
  for (const Measured& measured : rounds)
    rates.push_back(measured.mib_per_s);
  return rates;
}

void PrintTable(const Scene& scene, const Rounds& rounds) {
  const double read = Median(Rates(rounds.at("reads alone")));
  const double write = Median(Rates(rounds.at("writes alone")));
  const double limit = scene.is_one_device ? read * write / (read + write) : std::min(read, write);
  const double xargs = Median(Rates(rounds.at("xargs -P8 cp")));
  absl::PrintF("\n%s; limit %.0f MiB/s\n\n", scene.name, limit);
  absl::PrintF("| method | MiB/s | range | of xargs | of the limit | CPU-s/GiB |\n");
  absl::PrintF("|---|---|---|---|---|---|\n");
  for (const Method& method : Methods(1)) {
    const std::vector<double> rates = Rates(rounds.at(method.name));
    std::vector<double> cpu;
    for (const Measured& measured : rounds.at(method.name))
      cpu.push_back(measured.cpu_s_per_gib);
    absl::PrintF("| %s | %.0f | %.0f-%.0f | %.2f | %.2f | %.2f |\n", method.name, Median(rates),
                 *std::min_element(rates.begin(), rates.end()),
                 *std::max_element(rates.begin(), rates.end()), Median(rates) / xargs,
                 Median(rates) / limit, Median(cpu));
  }
}

// slow_fs over a folder, for as long as it lives; nothing where it was not built.
class SlowMount {
 public:
  SlowMount(const std::string& root, const std::string& mountpoint) : mountpoint_(mountpoint) {
    const std::string program = JoinPath(ProgramDirectory().value(), "slow_fs");
    if (!FileExists(program)) return;
    CHECK_OK(MakeDirectories(mountpoint));
    const dev_t device = Device();
    process_ = Spawn({.argv = {program, root, mountpoint, absl::StrCat(kLatencyMs)}}).value();
    for (int i = 0; i < 500 && Device() == device; ++i)
      absl::SleepFor(absl::Milliseconds(10));
    CHECK(Device() != device) << "cannot mount " << mountpoint;
  }
  ~SlowMount() {
    if (process_.has_value()) CHECK_OK(StopGroup(*process_, absl::Seconds(10)).status());
  }
  SlowMount(const SlowMount&) = delete;
  SlowMount& operator=(const SlowMount&) = delete;

  bool is_mounted() const { return process_.has_value(); }

 private:
  dev_t Device() const {
    struct stat info {};
    CHECK(stat(mountpoint_.c_str(), &info) == 0) << mountpoint_;
    return info.st_dev;
  }

  const std::string mountpoint_;
  std::optional<ProcessId> process_;
};

void RunAll(const std::string& disk, const std::string& memory, int rounds, Files files) {
  Write(JoinPath(disk, "source"), &files);
  Write(JoinPath(memory, "source"), &files);
  std::vector<Scene> scenes = {{.name = "one disk",
                                .source = JoinPath(disk, "source"),
                                .target = JoinPath(disk, "copy"),
                                .is_one_device = true},
                               {.name = "disk to memory",
                                .source = JoinPath(disk, "source"),
                                .target = JoinPath(memory, "copy"),
                                .is_to_memory = true},
                               {.name = "memory to disk",
                                .source = JoinPath(memory, "source"),
                                .target = JoinPath(disk, "copy")}};
  const SlowMount slow(JoinPath(memory, "source"), JoinPath(disk, "slow"));
  if (slow.is_mounted())
    scenes.push_back({.name = absl::StrCat(kLatencyMs, " ms a request, to memory"),
                      .source = JoinPath(disk, "slow"),
                      .target = JoinPath(memory, "copy"),
                      .is_to_memory = true});
  else
    absl::PrintF("No slow file system: slow_fs was not built (package libfuse3-dev).\n");
  std::map<std::string, Rounds> results;
  for (int round = 0; round < rounds; ++round) {
    for (const Scene& scene : scenes) {
      const bool is_slow = scene.source == JoinPath(disk, "slow");
      for (const Method& method : Methods(is_slow ? 64 : 8))
        results[scene.name][method.name].push_back(Measure(method, scene, files));
    }
  }
  for (const Scene& scene : scenes)
    PrintTable(scene, results[scene.name]);
}

int Main(int argc, char** argv) {
  int rounds = 5, count = 900;
  int64_t kib = 2048;
  if (argc < 3 || (argc > 3 && !absl::SimpleAtoi(argv[3], &rounds)) ||
      (argc > 4 && !absl::SimpleAtoi(argv[4], &count)) ||
      (argc > 5 && !absl::SimpleAtoi(argv[5], &kib)) || rounds < 1 || count < 1 || kib < 4) {
    std::fprintf(stderr, "usage: staging_bench DISK MEMORY [rounds] [files] [KiB each]\n");
    return 2;
  }
  const std::string disk = argv[1], memory = argv[2];
  for (const std::string& folder : {disk, memory}) {
    if (FileExists(folder)) {
      std::fprintf(stderr, "%s is there already; name a folder that can be removed\n",
                   folder.c_str());
      return 2;
    }
  }
  Files files = {.bytes_each = kib << 10};
  for (int i = 0; i < count; ++i)
    files.names.push_back(absl::StrFormat("%06d.tfrecord", i));
  RunAll(disk, memory, rounds, std::move(files));
  CHECK_OK(RemoveTree(disk));
  CHECK_OK(RemoveTree(memory));
  return 0;
}

}  // namespace
}  // namespace assay::data

int main(int argc, char** argv) {
  return assay::data::Main(argc, argv);
}
