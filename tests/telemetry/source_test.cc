// Each source on a tree of files as kernels write them.

#include "worker/agent/telemetry/source.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class SourceTest : public ::testing::Test {
 protected:
  void Put(const std::string& path, absl::string_view text) {
    const std::filesystem::path file = dir_.Path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  SourceOptions Options() const {
    return {.proc = dir_.Path("proc"), .sys = dir_.Path("sys"), .ticks_per_second = 100};
  }
  // What is not missing, by the names of the columns.
  static std::map<std::string, int64_t> Read(TelemetrySource* source) {
    std::vector<int64_t> values(source->columns().size(), telemetry::kMissing);
    source->Sample(values);
    std::map<std::string, int64_t> read;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != telemetry::kMissing) read[source->columns()[i].name] = values[i];
    return read;
  }

  testing::TempDir dir_;
};

TEST_F(SourceTest, Processors) {
  Put("proc/stat",
      "cpu  100 2 300 4000 50 6 7 80 0 0\ncpu0 50 1 150 2000 25 3 3 40 0 0\nintr 9 1 2\n"
      "ctxt 123456\nbtime 1700000000\nprocs_running 3\n");
  Put("proc/loadavg", "0.52 0.41 0.30 3/345 678\n");
  EXPECT_THAT(
      Read(MakeCpuSource(Options()).get()),
      UnorderedElementsAre(Pair("cpu.user", 1000), Pair("cpu.nice", 20), Pair("cpu.system", 3000),
                           Pair("cpu.idle", 40000), Pair("cpu.iowait", 500), Pair("cpu.irq", 60),
                           Pair("cpu.softirq", 70), Pair("cpu.steal", 800),
                           Pair("cpu.switches", 123456), Pair("cpu.runnable", 3)));
}

TEST_F(SourceTest, Pressure) {
  Put("proc/pressure/cpu", "some avg10=1.00 avg60=0.50 avg300=0.10 total=123\n");
  Put("proc/pressure/io",
      "some avg10=0.00 avg60=0.00 avg300=0.00 total=45\nfull avg10=0.00 avg60=0.00 avg300=0.00 "
      "total=6\n");
  EXPECT_THAT(Read(MakePressureSource(Options()).get()),
              UnorderedElementsAre(Pair("pressure.cpu.some", 123), Pair("pressure.io.some", 45),
                                   Pair("pressure.io.full", 6)));
}

TEST_F(SourceTest, Memory) {
  Put("proc/meminfo",
      "MemTotal:       24000 kB\nMemFree:        100 kB\nMemAvailable:   200 kB\n"
      "Cached:         50 kB\nSwapCached:     9 kB\nDirty:   3 kB\nShmem: 2 kB\nSwapFree: 0 kB\n");
  Put("proc/vmstat", "nr_free_pages 25\npswpin 4\npswpout 5\npgfault 99\npgmajfault 6\n");
  EXPECT_THAT(Read(MakeMemorySource(Options()).get()),
              UnorderedElementsAre(Pair("memory.free", 102400), Pair("memory.available", 204800),
                                   Pair("memory.cached", 51200), Pair("memory.shared", 2048),
                                   Pair("memory.dirty", 3072), Pair("memory.swap_free", 0),
                                   Pair("paging.swapped_in", 4), Pair("paging.swapped_out", 5),
                                   Pair("paging.major_faults", 6)));
}

TEST_F(SourceTest, WholeDisksOnce) {
  Put("sys/block/vda/stat", "");
  Put("sys/block/loop0/stat", "");
  Put("sys/block/nvme0n1/stat", "");
  Put("proc/diskstats",
      "   7       0 loop0 1 0 8 0 0 0 0 0 0 0 0\n"
      " 254       0 vda 21402 3 1543304 9002 5 0 80 1 0 9 9 0 0 0 0 0 0\n"
      " 254       1 vda1 21402 3 1543304 9002 5 0 80 1 0 9 9 0 0 0 0 0 0\n"
      " 259       0 nvme0n1 1 0 10 0 1 0 20 0 0 0 0 0 0 0 0 0 0\n");
  EXPECT_THAT(
      Read(MakeDiskSource(Options()).get()),
      UnorderedElementsAre(Pair("disk.vda.read", 1543304 * 512), Pair("disk.vda.written", 80 * 512),
                           Pair("disk.nvme0n1.read", 5120), Pair("disk.nvme0n1.written", 10240)));
}

TEST_F(SourceTest, AnInterfaceThatGoesAwayIsMissingAndANewOneNotSeen) {
  const std::string head =
      "Inter-|   Receive                |  Transmit\n face |bytes    packets errs drop fifo frame "
      "compressed multicast|bytes packets errs drop fifo colls carrier compressed\n    lo:  9 9 0 "
      "0 "
      "0 0 0 0 9 9 0 0 0 0 0 0\n";
  Put("proc/self/net/dev", head + "  eth0: 100 1 2 3 0 0 0 0 500 6 7 8 0 0 0 0\n");
  const std::unique_ptr<TelemetrySource> source = MakeNetworkSource(Options());
  EXPECT_THAT(
      Read(source.get()),
      UnorderedElementsAre(Pair("network.eth0.received", 100), Pair("network.eth0.sent", 500),
                           Pair("network.eth0.receive_errors", 2),
                           Pair("network.eth0.send_errors", 7), Pair("network.eth0.dropped", 3)));
  Put("proc/self/net/dev", head + "  eth1: 1 1 0 0 0 0 0 0 5 6 0 0 0 0 0 0\n");
  EXPECT_THAT(Read(source.get()), IsEmpty());
}

TEST_F(SourceTest, InfinibandCountsWordsOfFourBytes) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/counters/";
  Put(port + "port_rcv_data", "1000\n");
  Put(port + "port_xmit_data", "2000\n");
  Put(port + "symbol_error", "3\n");
  EXPECT_THAT(Read(MakeInfinibandSource(Options()).get()),
              UnorderedElementsAre(Pair("infiniband.mlx5_0_1.received", 4000),
                                   Pair("infiniband.mlx5_0_1.sent", 8000),
                                   Pair("infiniband.mlx5_0_1.symbol_errors", 3)));
}

TEST_F(SourceTest, FrequencyIsTheMeanAndHeatTheHottest) {
  for (const char* core : {"cpu0", "cpu1"}) {
    const std::string folder = std::string("sys/devices/system/cpu/") + core;
    Put(folder + "/cpufreq/scaling_cur_freq", core == std::string("cpu0") ? "1000\n" : "3000\n");
    Put(folder + "/thermal_throttle/core_throttle_count", "4\n");
  }
  Put("sys/devices/system/cpu/cpufreq/boost", "1\n");
  Put("sys/class/thermal/thermal_zone0/temp", "41000\n");
  Put("sys/class/thermal/thermal_zone1/temp", "63000\n");
  EXPECT_THAT(Read(MakeFrequencySource(Options()).get()),
              UnorderedElementsAre(Pair("cpu.frequency", 2000), Pair("cpu.throttled", 8),
                                   Pair("temperature.highest", 63000)));
}

class EnergyTest : public SourceTest {
 protected:
  void PutZone(const std::string& zone, const std::string& name, const std::string& energy_uj) {
    const std::string folder = "sys/class/powercap/" + zone + "/";
    Put(folder + "name", name + "\n");
    Put(folder + "energy_uj", energy_uj + "\n");
    Put(folder + "max_energy_range_uj", "262143328850\n");
  }
};

TEST_F(EnergyTest, NothingCountsTwice) {
  PutZone("intel-rapl:0", "package-0", "1000");
  PutZone("intel-rapl:0:0", "core", "900");
  PutZone("intel-rapl:0:1", "dram", "50");
  PutZone("intel-rapl:1", "package-1", "2000");
  PutZone("intel-rapl:1:0", "uncore", "7");
  PutZone("intel-rapl:1:1", "dram", "60");
  PutZone("intel-rapl:2", "psys", "5000");
  PutZone("intel-rapl-mmio:0", "package-0", "1000");
  EXPECT_THAT(
      Read(MakeRaplSource(Options()).get()),
      UnorderedElementsAre(Pair("energy.rapl.package-0", 1000), Pair("energy.rapl.package-1", 2000),
                           Pair("energy.rapl.dram-0", 50), Pair("energy.rapl.dram-1", 60),
                           Pair("energy.rapl.psys", 5000)));
}

TEST_F(EnergyTest, AMeterThatBeginsAgainGoesOn) {
  PutZone("intel-rapl:0", "package-0", "262143328000");
  const std::unique_ptr<TelemetrySource> source = MakeRaplSource(Options());
  PutZone("intel-rapl:0", "package-0", "1150");
  EXPECT_THAT(Read(source.get()), Contains(Pair("energy.rapl.package-0", 262143328850 + 1150)));
  PutZone("intel-rapl:0", "package-0", "2000");
  EXPECT_THAT(Read(source.get()), Contains(Pair("energy.rapl.package-0", 262143328850 + 2000)));
}

TEST_F(EnergyTest, ADriverThatIsLoadedAnewIsNoWrap) {
  PutZone("intel-rapl:0", "package-0", "500000");
  const std::unique_ptr<TelemetrySource> source = MakeRaplSource(Options());
  PutZone("intel-rapl:0", "package-0", "10");
  EXPECT_THAT(Read(source.get()), Contains(Pair("energy.rapl.package-0", 10)))
      << "262 kJ within a second would be 262 kW";
}

TEST_F(EnergyTest, ACounterThatIsSetBackNearItsEndIsNoWrap) {
  PutZone("intel-rapl:0", "package-0", "200000000000");
  int64_t now_ns = 0;
  SourceOptions options = Options();
  options.now_ns = [&now_ns] { return now_ns; };
  const std::unique_ptr<TelemetrySource> source = MakeRaplSource(options);
  now_ns += 1'000'000'000;
  PutZone("intel-rapl:0", "package-0", "0");
  EXPECT_THAT(Read(source.get()), Contains(Pair("energy.rapl.package-0", 0)))
      << "62 kJ within a second would be 62 kW";

  PutZone("intel-rapl:0", "package-0", "262143000000");
  Read(source.get());
  now_ns += 600'000'000'000;
  PutZone("intel-rapl:0", "package-0", "200000000000");
  EXPECT_THAT(Read(source.get()),
              Contains(Pair("energy.rapl.package-0", 262143328850 + 200000000000)))
      << "200 kJ within ten minutes are 334 W";
}

TEST_F(EnergyTest, ACounterThatCannotBeReadIsMissing) {
  PutZone("intel-rapl:0", "package-0", "1000");
  const std::unique_ptr<TelemetrySource> source = MakeRaplSource(Options());
  Put("sys/class/powercap/intel-rapl:0/energy_uj", "");
  EXPECT_THAT(Read(source.get()), IsEmpty());
}

class CrayTest : public SourceTest {
 protected:
  void PutCounters(int64_t joules, int64_t freshness, int64_t startup = 7) {
    const auto put = [this](const std::string& name, int64_t value, const std::string& unit) {
      Put("sys/cray/pm_counters/" + name, std::to_string(value) + unit + "\n");
    };
    put("energy", joules, " J 1700000000000000 us");
    put("power", 321, " W 1700000000000000 us");
    put("freshness", freshness, "");
    put("startup", startup, "");
  }
  std::unique_ptr<TelemetrySource> Source() {
    SourceOptions options = Options();
    options.now_ns = [this] { return now_ns_; };
    return MakeCraySource(options);
  }
  int64_t now_ns_ = 0;
};

TEST_F(CrayTest, IsOfTheNode) {
  PutCounters(12345, 10);
  EXPECT_THAT(Read(Source().get()), UnorderedElementsAre(Pair("energy.node.cray", 12'345'000'000),
                                                         Pair("power.node.cray", 321)));
}

TEST_F(CrayTest, AControllerThatStandsStillHasNoValues) {
  PutCounters(100, 10);
  const std::unique_ptr<TelemetrySource> source = Source();
  Read(source.get());
  now_ns_ += 100'000'000;
  EXPECT_THAT(Read(source.get()), Contains(Pair("energy.node.cray", 100'000'000)))
      << "asked again before it can have counted";
  now_ns_ += 900'000'000;
  EXPECT_THAT(Read(source.get()), IsEmpty());
  now_ns_ += 1'000'000'000;
  PutCounters(700, 11);
  EXPECT_THAT(Read(source.get()), Contains(Pair("energy.node.cray", 700'000'000)));
}

TEST_F(CrayTest, AControllerThatWasStartedAnewBeginsAtZero) {
  PutCounters(100, 10, 7);
  const std::unique_ptr<TelemetrySource> source = Source();
  Read(source.get());
  now_ns_ += 1'000'000'000;
  PutCounters(150, 3, 8);
  EXPECT_THAT(Read(source.get()), Contains(Pair("energy.node.cray", 0)));
  now_ns_ += 1'000'000'000;
  PutCounters(170, 13, 8);
  EXPECT_THAT(Read(source.get()), Contains(Pair("energy.node.cray", 20'000'000)));
}

TEST_F(SourceTest, ThePowerMeterOfTheBoardIsOfTheNode) {
  Put("sys/class/hwmon/hwmon0/name", "power_meter\n");
  Put("sys/class/hwmon/hwmon0/power1_average", "412000000\n");
  Put("sys/class/hwmon/hwmon0/power1_average_max", "999000000\n");
  Put("sys/class/hwmon/hwmon1/name", "amd_energy\n");
  Put("sys/class/hwmon/hwmon1/energy1_input", "77\n");
  Put("sys/class/hwmon/hwmon1/power2_input", "5000000\n");
  Put("sys/class/hwmon/hwmon2/name", "nvme\n");
  Put("sys/class/hwmon/hwmon2/temp1_input", "40000\n");
  EXPECT_THAT(Read(MakeHwmonSource(Options()).get()),
              UnorderedElementsAre(Pair("power.node.power_meter", 412000000),
                                   Pair("hwmon.amd_energy.energy1", 77),
                                   Pair("hwmon.amd_energy.power2", 5000000)));
}

class RunSourceTest : public SourceTest {
 protected:
  void PutProcess(int pid, int own_ticks, int childrens_ticks, int pages, int read_bytes) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    Put(folder + "stat", std::to_string(pid) + " (a (strange) name) R 1 1 1 0 -1 0 10 0 2 0 " +
                             std::to_string(own_ticks) + " 5 " + std::to_string(childrens_ticks) +
                             " 0 20 0 8 0 9999 1000000 " + std::to_string(pages) + " 0 0\n");
    Put(folder + "io", "rchar: 1\nread_bytes: " + std::to_string(read_bytes) +
                           "\nwrite_bytes: 512\ncancelled_write_bytes: 0\n");
  }
  std::unique_ptr<TelemetrySource> Source() {
    SourceOptions options = Options();
    options.processes = [this] { return processes_; };
    return MakeRunSource(options);
  }
  std::vector<pid_t> processes_;
};

TEST_F(RunSourceTest, IsTheSumOfItsProcesses) {
  PutProcess(7, 100, 20, 3, 4096);
  PutProcess(8, 200, 0, 4, 8192);
  processes_ = {7, 8};
  EXPECT_THAT(Read(Source().get()),
              UnorderedElementsAre(Pair("run.cpu", 3300), Pair("run.memory", 7 * getpagesize()),
                                   Pair("run.major_faults", 4), Pair("run.read", 12288),
                                   Pair("run.written", 1024)));
}

TEST_F(RunSourceTest, WhatAProcessReadStaysWhenItHasEnded) {
  PutProcess(7, 100, 0, 3, 4096);
  PutProcess(8, 200, 0, 4, 8192);
  processes_ = {7, 8};
  const std::unique_ptr<TelemetrySource> source = Source();
  Read(source.get());
  Put("proc/8/stat", "");  // as a process that has ended reads
  Put("proc/8/io", "");
  PutProcess(7, 100, 205, 3, 12288);  // its parent has reaped it, and has its counts
  const std::map<std::string, int64_t> read = Read(source.get());
  EXPECT_THAT(read, Contains(Pair("run.cpu", 3100)));
  EXPECT_THAT(read, Contains(Pair("run.read", 12288)));
  EXPECT_THAT(read, Contains(Pair("run.memory", 3 * getpagesize())));
}

TEST_F(RunSourceTest, WhatMayNotBeReadIsMissing) {
  PutProcess(7, 100, 0, 3, 4096);
  std::filesystem::remove(dir_.Path("proc/7/io"));
  processes_ = {7};
  EXPECT_THAT(Read(Source().get()), Not(Contains(Key("run.read"))));
}

TEST_F(RunSourceTest, OneProcessThatDoesNotTellHidesTheWhole) {
  PutProcess(7, 100, 0, 3, 4096);
  PutProcess(8, 200, 0, 4, 8192);
  std::filesystem::remove(dir_.Path("proc/8/io"));
  processes_ = {7, 8};
  EXPECT_THAT(Read(Source().get()), Not(Contains(Key("run.read"))))
      << "what the step itself has read is not what the run has";
}

TEST_F(SourceTest, WhatServersSentToClientsOfNetworkFileSystems) {
  Put("proc/self/mountstats",
      "device rootfs mounted on / with fstype rootfs\n"
      "device srv:/data mounted on /data with fstype nfs4 statvers=1.1\n"
      "\topts:\trw,vers=4.2\n\tbytes:\t900 800 70 60 5000 40 3 2\n\tRPC iostats version: 1.1\n"
      "device srv:/home mounted on /home with fstype nfs statvers=1.1\n"
      "\tbytes:\t1 2 3 4 50 6 7 8\n"
      "device srv:/data mounted on /also with fstype nfs4 statvers=1.1\n"
      "\tbytes:\t900 800 70 60 5000 40 3 2\n");
  Put("proc/fs/lustre/osc/fs-OST0000-osc-ffff/stats",
      "snapshot_time 1.2 secs.nsecs\nread_bytes 3 samples [bytes] 4096 1048576 2101248\n"
      "write_bytes 1 samples [bytes] 10 10 10\n");
  Put("proc/fs/lustre/osc/fs-OST0001-osc-ffff/stats", "snapshot_time 1.2 secs.nsecs\n");
  EXPECT_THAT(
      Read(MakeServerSource(Options()).get()),
      UnorderedElementsAre(Pair("server.nfs.read", 5050), Pair("server.nfs.written", 46),
                           Pair("server.lustre.read", 2101248), Pair("server.lustre.written", 10)))
      << "a file system that is mounted twice is read once";
}

TEST_F(SourceTest, HowTheClockIsSteered) {
  SourceOptions options = Options();
  options.steering = [](timex* steering) {
    EXPECT_EQ(steering->modes, 0U) << "nothing is changed";
    steering->status = STA_PLL | STA_INS;
    steering->tick = 9000;
    steering->freq = -32768000;  // 500 ppm slower
    steering->offset = 12;
    steering->maxerror = 16'000'000;
    steering->tai = 37;
    return TIME_INS;
  };
  const std::map<std::string, int64_t> read = Read(MakeClockSource(options).get());
  EXPECT_THAT(read, IsSupersetOf(std::map<std::string, int64_t>{{"clock.state", TIME_INS},
                                                                {"clock.status", STA_PLL | STA_INS},
                                                                {"clock.tick", 9000},
                                                                {"clock.frequency", -500'000},
                                                                {"clock.offset", 12'000},
                                                                {"clock.error", 16'000'000},
                                                                {"clock.tai", 37}}));
}

TEST_F(SourceTest, WhatAdjtimexDoesNotTellIsMissing) {
  SourceOptions options = Options();
  options.steering = [](timex*) { return -1; };
  EXPECT_THAT(Read(MakeClockSource(options).get()), UnorderedElementsAre(Key("clock.gained")));
}

TEST_F(SourceTest, ANodeWithNothingHasNoSources) {
  EXPECT_THAT(MakeSources(Options()), IsEmpty());
}

TEST_F(SourceTest, FilesWithoutSenseAreMissingAndHarmNothing) {
  for (const char* file : {"proc/stat", "proc/loadavg", "proc/meminfo", "proc/vmstat",
                           "proc/diskstats", "proc/self/net/dev", "proc/pressure/cpu"})
    Put(file, "cpu x y\n\xff\n: : :\nsome\n total= \n1 2 3 4 5 6 7 8 9 10 11 12 13\n");
  for (const std::unique_ptr<TelemetrySource>& source : MakeSources(Options()))
    EXPECT_THAT(Read(source.get()), IsEmpty());
}

TEST(ThisNodeTest, TellsOfProcessorsAndMemory) {
  std::map<std::string, int64_t> read;
  for (const std::unique_ptr<TelemetrySource>& source : MakeSources({})) {
    std::vector<int64_t> values(source->columns().size(), telemetry::kMissing);
    source->Sample(values);
    for (size_t i = 0; i < values.size(); ++i)
      read[source->columns()[i].name] = values[i];
  }
  EXPECT_GT(read["cpu.user"], 0);
  EXPECT_GT(read["memory.free"], 0);
}

}  // namespace
}  // namespace assay::agent
