#include "worker/agent/inventory.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/json_reader.h"
#include "common/json_value.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::TempDir;

// Rules specification, section 4.2.
const char* const kMembers[] = {"submitter",
                                "division",
                                "status",
                                "system_name",
                                "number_of_nodes",
                                "host_processors_per_node",
                                "host_processor_model_name",
                                "host_processor_core_count",
                                "host_processor_vcpu_count",
                                "host_processor_frequency",
                                "host_processor_caches",
                                "host_processor_interconnect",
                                "host_memory_capacity",
                                "host_storage_type",
                                "host_storage_capacity",
                                "host_networking",
                                "host_networking_topology",
                                "host_memory_configuration",
                                "accelerators_per_node",
                                "accelerator_model_name",
                                "accelerator_host_interconnect",
                                "accelerator_frequency",
                                "accelerator_on-chip_memories",
                                "accelerator_memory_configuration",
                                "accelerator_memory_capacity",
                                "accelerator_interconnect",
                                "accelerator_interconnect_topology",
                                "cooling",
                                "hw_notes",
                                "framework",
                                "other_software_stack",
                                "operating_system",
                                "sw_notes"};

TEST(InventoryTest, TheDescriptionHasAllMembersAsStrings) {
  const JsonResult parsed = ParseJson(SystemDescriptionJson(Inventory{}));
  ASSERT_EQ(parsed.error, JsonError::kNone);
  ASSERT_NE(parsed.value.AsObject(), nullptr);
  EXPECT_EQ(parsed.value.AsObject()->size(), 33U);
  for (const char* name : kMembers) {
    const JsonValue* member = parsed.value.Find(name);
    ASSERT_NE(member, nullptr) << name;
    EXPECT_NE(member->AsString(), nullptr) << name;
  }
}

TEST(InventoryTest, CountsArePerSocketWhereMlperfWantsThemSo) {
  const Inventory inventory{
      .cpu_model = "Fast \"CPU\"",
      .socket_count = 2,
      .core_count = 64,
      .thread_count = 128,
      .accelerators = {{.model = "GPU", .memory_bytes = int64_t{80} << 30}, {.model = "GPU"}}};
  const JsonResult parsed = ParseJson(SystemDescriptionJson(inventory));
  EXPECT_EQ(*parsed.value.Find("host_processors_per_node")->AsString(), "2");
  EXPECT_EQ(*parsed.value.Find("host_processor_core_count")->AsString(), "32");
  EXPECT_EQ(*parsed.value.Find("host_processor_vcpu_count")->AsString(), "64");
  EXPECT_EQ(*parsed.value.Find("host_processor_model_name")->AsString(), "Fast \"CPU\"");
  EXPECT_EQ(*parsed.value.Find("accelerators_per_node")->AsString(), "2");
  EXPECT_EQ(*parsed.value.Find("accelerator_memory_capacity")->AsString(), "80 GiB");
}

TEST(InventoryTest, ProbesThisMachineAndAsksTheTrainer) {
  const TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("trainer"),
                              "#!/bin/sh\n"
                              "[ \"$1\" = --version ] && echo 'trainer 9.9'\n"
                              "[ \"$1\" = --backends ] && printf 'onednn\\nreference\\n'\n"
                              "[ \"$1\" = --backends ] && echo 'level=info backend=cuda' >&2\n"
                              "exit 0\n",
                              0755),
              IsOk());
  v1::WorkerConfig config;
  config.set_data_directory(dir.path());
  config.set_trainer_program(dir.Path("trainer"));

  const Inventory inventory = Probe(config);

  EXPECT_FALSE(inventory.host_name.empty());
  EXPECT_GE(inventory.core_count, 1);
  EXPECT_GE(inventory.thread_count, inventory.core_count);
  EXPECT_GT(inventory.memory_bytes, int64_t{1} << 20);
  EXPECT_GT(inventory.storage_bytes, 0);
  EXPECT_FALSE(inventory.storage_type.empty());
  EXPECT_THAT(inventory.kernel, HasSubstr("Linux"));
  EXPECT_THAT(inventory.libraries, HasSubstr("gRPC"));
  EXPECT_EQ(inventory.framework, "trainer 9.9");
  EXPECT_THAT(inventory.backends, ElementsAre("onednn", "reference"));
}

TEST(InventoryTest, WithoutATrainerThereAreNoBackends) {
  const TempDir dir;
  v1::WorkerConfig config;
  config.set_data_directory(dir.path());
  config.set_trainer_program("/no/such/trainer");
  EXPECT_THAT(Probe(config).backends, IsEmpty());
}

TEST(InventoryTest, TheConfigurationLimitsTheCores) {
  Inventory inventory{.core_count = 64};
  v1::WorkerConfig config;
  EXPECT_EQ(CapabilitiesOf(inventory, config, "h:1").core_count(), 64);
  config.add_cores(3);
  config.add_cores(4);
  EXPECT_EQ(CapabilitiesOf(inventory, config, "h:1").core_count(), 2);
  config.set_core_count(1);
  EXPECT_EQ(CapabilitiesOf(inventory, config, "h:1").core_count(), 1);
  EXPECT_EQ(CapabilitiesOf(inventory, config, "h:1").rendezvous_address(), "h:1");
}

}  // namespace
}  // namespace assay::agent
