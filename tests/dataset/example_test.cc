#include "common/dataset/example.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

#include "common/dataset/tfrecord.h"
#include "tests/support/status_matchers.h"

namespace assay::dataset {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// tf.Example as TensorFlow declares it, but with the map spelled as the list of entries that it is
// on the wire, so that a test decides their order.
constexpr char kSchema[] = R"pb(
  name: "example.proto"
  syntax: "proto3"
  message_type {
    name: "BytesList"
    field { name: "value" number: 1 type: TYPE_BYTES label: LABEL_REPEATED }
  }
  message_type {
    name: "FloatList"
    field {
      name: "value"
      number: 1
      type: TYPE_FLOAT
      label: LABEL_REPEATED
      options { packed: true }
    }
  }
  message_type {
    name: "LooseFloatList"
    field {
      name: "value"
      number: 1
      type: TYPE_FLOAT
      label: LABEL_REPEATED
      options { packed: false }
    }
  }
  message_type {
    name: "Feature"
    field { name: "b" number: 1 type: TYPE_MESSAGE type_name: "BytesList" label: LABEL_OPTIONAL }
    field { name: "f" number: 2 type: TYPE_MESSAGE type_name: "FloatList" label: LABEL_OPTIONAL }
    field {
      name: "loose"
      number: 2000
      type: TYPE_MESSAGE
      type_name: "LooseFloatList"
      label: LABEL_OPTIONAL
    }
    field { name: "unknown" number: 9 type: TYPE_FIXED64 label: LABEL_OPTIONAL }
  }
  message_type {
    name: "Entry"
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: "Feature" label: LABEL_OPTIONAL }
  }
  message_type {
    name: "Features"
    field { name: "feature" number: 1 type: TYPE_MESSAGE type_name: "Entry" label: LABEL_REPEATED }
  }
  message_type {
    name: "Example"
    field {
      name: "features"
      number: 1
      type: TYPE_MESSAGE
      type_name: "Features"
      label: LABEL_OPTIONAL
    }
    field { name: "unknown" number: 7 type: TYPE_INT32 label: LABEL_OPTIONAL }
  }
)pb";

// Serialises an Example given in text by the protobuf library: an encoder that is not ours.
std::string Serialize(const std::string& text) {
  google::protobuf::FileDescriptorProto schema;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kSchema, &schema));
  google::protobuf::DescriptorPool pool;
  const google::protobuf::FileDescriptor* file = pool.BuildFile(schema);
  EXPECT_NE(file, nullptr);
  google::protobuf::DynamicMessageFactory factory(&pool);
  const std::unique_ptr<google::protobuf::Message> message(
      factory.GetPrototype(file->FindMessageTypeByName("Example"))->New());
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, message.get()));
  return message->SerializeAsString();
}

// A cube of edge 1: four counts.
constexpr char kX[] =
    R"(feature { key: "x" value { b { value: "\x01\x00\x02\x00\x03\x00\xff\x7f" } } })";
constexpr char kY[] = R"(feature { key: "y" value { f { value: [0.5, -0.25, 1, -1] } } })";

std::string Features(const std::string& a, const std::string& b) {
  return "features {" + a + b + "}";
}

void ExpectIsTheSample(const absl::StatusOr<CosmoSampleView>& sample) {
  ASSERT_THAT(sample, IsOk());
  EXPECT_EQ(absl::BytesToHexString(sample->voxels), "010002000300ff7f");
  EXPECT_THAT(sample->targets, ElementsAre(0.5F, -0.25F, 1.0F, -1.0F));
}

TEST(ExampleTest, EncodesWhatProtobufEncodes) {
  EXPECT_EQ(EncodeCosmoSample(std::vector<int16_t>{1, 2, 3, 32767}, {0.5F, -0.25F, 1.0F, -1.0F}),
            Serialize(Features(kX, kY)));
}

TEST(ExampleTest, AcceptsTheFeaturesInEitherOrder) {
  ExpectIsTheSample(ParseCosmoSample(Serialize(Features(kX, kY)), 1));
  ExpectIsTheSample(ParseCosmoSample(Serialize(Features(kY, kX)), 1));
}

TEST(ExampleTest, AcceptsFloatsThatAreNotPacked) {
  std::string message = Serialize(
      Features(R"(feature { key: "y" value { loose { value: [0.5, -0.25, 1, -1] } } })", kX));
  // The field number of the loose list (2000: tag bytes 82 7D) becomes that of a float_list (2),
  // written just as long.
  const size_t tag = message.find("\x82\x7d");
  ASSERT_NE(tag, std::string::npos);
  message.replace(tag, 2, std::string("\x92\x00", 2));

  ExpectIsTheSample(ParseCosmoSample(message, 1));
}

TEST(ExampleTest, SkipsUnknownFieldsAndFeatures) {
  const std::string other = R"(feature { key: "z" value { unknown: 5 f { value: 3 } } })";

  ExpectIsTheSample(
      ParseCosmoSample(Serialize("unknown: 300 " + Features(std::string(kY) + other, kX)), 1));
}

// File sizes from the benchmark's data, and the bytes before the voxels.
TEST(ExampleTest, FilesHaveThePublishedSizes) {
  const auto file_bytes = [](int edge) {
    const std::vector<int16_t> zeros(static_cast<size_t>(CosmoValues(edge)));
    return std::ssize(EncodeCosmoSample(zeros, {1, 2, 3, 4})) + kFrameBytes;
  };
  EXPECT_EQ(file_bytes(128), 16777287);
  EXPECT_EQ(file_bytes(64), 2097223);
  EXPECT_EQ(file_bytes(32), 262210);

  const std::vector<int16_t> counts(static_cast<size_t>(CosmoValues(128)), 7);
  const std::string message = EncodeCosmoSample(counts, {1, 2, 3, 4});
  EXPECT_EQ(absl::BytesToHexString(message.substr(0, 28)),
            "0ab28080080a928080080a0178128a8080080a858080080a80808008");
  EXPECT_EQ(message.find(std::string("\x07\x00\x07\x00", 4)), 28U);
}

TEST(ExampleTest, RefusesAnotherShape) {
  const std::string message = Serialize(Features(kX, kY));

  EXPECT_THAT(ParseCosmoSample(message, 2),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("8 bytes; a cube of edge 2 has 64")));
  EXPECT_THAT(ParseCosmoSample(
                  Serialize(Features(kX, R"(feature { key: "y" value { f { value: 1 } } })")), 1),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"y\" has 1 values")));
  EXPECT_THAT(ParseCosmoSample(Serialize(Features(kX, "")), 1),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"y\" has 0")));
  EXPECT_THAT(ParseCosmoSample(
                  Serialize(Features(kY, R"(feature { key: "x" value { f { value: 1 } } })")), 1),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not a bytes_list")));
}

TEST(ExampleTest, RefusesTargetsThatAreNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::string message = EncodeCosmoSample(std::vector<int16_t>{1, 2, 3, 4}, {0, 0, bad, 0});
    EXPECT_THAT(ParseCosmoSample(message, 1),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("target 2")));
  }
}

TEST(ExampleTest, FindsNegativeCounts) {
  const auto check = [](int16_t count) {
    const std::string message =
        EncodeCosmoSample(std::vector<int16_t>{1, count, 3, 4}, {0, 0, 0, 0});
    return CheckCounts(ParseCosmoSample(message, 1).value());
  };

  EXPECT_THAT(check(32767), IsOk());
  EXPECT_THAT(check(-1), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("value 1")));
}

// Goal: hostile bytes give an error or a result, never a read outside the message (the sanitizer
// builds watch). Method: cut short and damage every byte.
TEST(ExampleTest, SurvivesDamage) {
  const std::string good = Serialize(Features(kX, kY));
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ParseCosmoSample(good.substr(0, i), 1).ok()) << i;
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      static_cast<void>(ParseCosmoSample(bad, 1).ok());
    }
  }
}

}  // namespace
}  // namespace assay::dataset
