#include "worker/engine/backends/onednn/winograd_convolution.h"

#include <algorithm>

#include "common/log.h"
#include "worker/engine/backends/onednn/onednn_error.h"

namespace assay {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr auto kWinograd = dnnl::algorithm::convolution_winograd;
constexpr int64_t kMinChannels = 32;
constexpr int64_t kMinPixels = 256;  // of all samples: less is too few tiles to fill a product

dnnl::memory::dims DimsOf(const Shape& map) {
  return {map[0], map[3], map[1], map[2]};
}

bool CanDo(const Conv2dShape& s) {
  return s.kernel == 3 && s.stride == 1 && s.dilation == 1 && s.groups == 1 &&
         std::min(s.in_channels, s.out_channels) >= kMinChannels &&
         s.batch * s.height * s.width >= kMinPixels;
}

}  // namespace

void WinogradMemory::Reserve(Place place, size_t bytes) {
  Bytes& reserved = places_[place];
  if (reserved.count >= bytes) return;
  reserved = {};  // before the larger one
  const Desc desc({static_cast<int64_t>(bytes)}, Type::u8, Tag::a);
  reserved = {dnnl::memory(desc, engine_), bytes};
}

dnnl::memory WinogradMemory::View(Place place, const Desc& desc) const {
  CHECK(places_[place].count >= desc.get_size());
  return {desc, engine_, places_[place].memory.get_data_handle()};
}

// What the library offers; each may be empty.
struct WinogradConvolution::Plans {
  Plans(const Conv2dShape& s, const dnnl::engine& engine) {
    const Desc x(DimsOf(s.x()), Type::f32, Tag::any), y(DimsOf(s.y()), Type::f32, Tag::any);
    const Desc w({s.out_channels, s.in_channels, s.kernel, s.kernel}, Type::f32, Tag::any);
    const dnnl::memory::dims strides = {1, 1}, pad = {s.pad(), s.pad()};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    forward = {{dnnl::prop_kind::forward_training, kWinograd, x, w, y, strides, pad, pad},
               attributes,
               engine,
               /*allow_empty=*/true};
    if (!forward) return;
    backward_data = {{kWinograd, x, w, y, strides, pad, pad}, attributes, engine, forward, true};
    backward_weights = {{kWinograd, x, w, y, strides, pad, pad}, attributes, engine, forward, true};
  }

  // Whether all passes are there and agree on the tensors' layouts.
  bool AreComplete() const {
    return forward && backward_data && backward_weights &&
           backward_data.diff_src_desc() == forward.src_desc() &&
           backward_data.diff_dst_desc() == forward.dst_desc() &&
           backward_weights.src_desc() == forward.src_desc() &&
           backward_weights.diff_dst_desc() == forward.dst_desc();
  }

  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_data::primitive_desc backward_data;
  dnnl::convolution_backward_weights::primitive_desc backward_weights;
};

std::unique_ptr<WinogradConvolution> WinogradConvolution::Make(const Conv2dShape& shape,
                                                               const dnnl::stream& stream,
                                                               WinogradMemory* memory) {
  if (!CanDo(shape)) return nullptr;
  const Plans plans(shape, stream.get_engine());
  if (!plans.AreComplete()) return nullptr;
  return std::unique_ptr<WinogradConvolution>(
      new WinogradConvolution(shape, plans, stream, memory));
}

WinogradConvolution::WinogradConvolution(const Conv2dShape& shape, const Plans& plans,
                                         const dnnl::stream& stream, WinogradMemory* memory)
    : shape_(shape), stream_(stream), memory_(memory) {
  const dnnl::engine engine = stream.get_engine();
  const auto map = [&](const Shape& extents, const Desc& blocked) {
    const Desc plain(DimsOf(extents), Type::f32, Tag::nhwc);
    return Map{dnnl::memory(plain, engine, nullptr), blocked,
               dnnl::reorder({engine, plain, engine, blocked}),
               dnnl::reorder({engine, blocked, engine, plain})};
  };
  x_ = map(shape.x(), plans.forward.src_desc());
  y_ = map(shape.y(), plans.forward.dst_desc());
  const Desc plain({shape.out_channels, shape.in_channels, shape.kernel, shape.kernel}, Type::f32,
                   Tag::hwio);
  w_ = dnnl::memory(plain, engine, nullptr);
  const auto weights_in = [&](const Desc& desc) {
    return dnnl::reorder({engine, plain, engine, desc});
  };
  const Desc in = plans.forward.weights_desc(), back = plans.backward_data.weights_desc();
  const Desc gradient = plans.backward_weights.diff_weights_desc();
  forward_ = {dnnl::convolution_forward(plans.forward), plans.forward.scratchpad_desc(),
              dnnl::memory(in, engine), weights_in(in)};
  backward_data_ = {dnnl::convolution_backward_data(plans.backward_data),
                    plans.backward_data.scratchpad_desc(), dnnl::memory(back, engine),
                    weights_in(back)};
  backward_weights_ = {dnnl::convolution_backward_weights(plans.backward_weights),
                       plans.backward_weights.scratchpad_desc(), dnnl::memory(gradient, engine),
                       dnnl::reorder({engine, gradient, engine, plain})};
  memory->Reserve(WinogradMemory::kX, x_.blocked.get_size());
  memory->Reserve(WinogradMemory::kY, y_.blocked.get_size());
  for (const Pass* pass : {&forward_, &backward_data_, &backward_weights_})
    memory->Reserve(WinogradMemory::kScratch, pass->scratch.get_size());
}

void WinogradConvolution::WeightsChanged() {
  forward_.is_current = false;
  backward_data_.is_current = false;
}

dnnl::memory WinogradConvolution::Import(const Tensor& tensor, WinogradMemory::Place place,
                                         Map* map) {
  dnnl::memory blocked = memory_->View(place, map->blocked);
  map->plain.set_data_handle(tensor.As<float>());
  map->in.execute(stream_, map->plain, blocked);
  return blocked;
}

void WinogradConvolution::Export(const dnnl::memory& blocked, const Tensor& tensor, Map* map) {
  map->plain.set_data_handle(tensor.As<float>());
  dnnl::memory from = blocked;
  map->out.execute(stream_, from, map->plain);
}

void WinogradConvolution::Pack(const Tensor& w, Pass* pass) {
  if (pass->is_current) return;
  pass->is_current = true;
  w_.set_data_handle(w.As<float>());
  pass->reorder.execute(stream_, w_, pass->weights);
}

dnnl::memory WinogradConvolution::Scratch(const Pass& pass) const {
  return memory_->View(WinogradMemory::kScratch, pass.scratch);
}

void WinogradConvolution::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
  MustOnednn("convolution forward", [&] {
    Pack(w, &forward_);
    const dnnl::memory to = memory_->View(WinogradMemory::kY, y_.blocked);
    forward_.primitive.execute(stream_, {{DNNL_ARG_SRC, Import(x, WinogradMemory::kX, &x_)},
                                         {DNNL_ARG_WEIGHTS, forward_.weights},
                                         {DNNL_ARG_DST, to},
                                         {DNNL_ARG_SCRATCHPAD, Scratch(forward_)}});
    Export(to, y, &y_);
  });
}

void WinogradConvolution::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  CHECK(dx.shape == shape_.x() && w.shape == shape_.w() && dy.shape == shape_.y());
  MustOnednn("convolution backward data", [&] {
    Pack(w, &backward_data_);
    const dnnl::memory to = memory_->View(WinogradMemory::kX, x_.blocked);
    backward_data_.primitive.execute(stream_,
                                     {{DNNL_ARG_DIFF_DST, Import(dy, WinogradMemory::kY, &y_)},
                                      {DNNL_ARG_WEIGHTS, backward_data_.weights},
                                      {DNNL_ARG_DIFF_SRC, to},
                                      {DNNL_ARG_SCRATCHPAD, Scratch(backward_data_)}});
    Export(to, dx, &x_);
  });
}

void WinogradConvolution::BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  CHECK(x.shape == shape_.x() && dw.shape == shape_.w() && dy.shape == shape_.y());
  MustOnednn("convolution backward weights", [&] {
    backward_weights_.primitive.execute(stream_,
                                        {{DNNL_ARG_SRC, Import(x, WinogradMemory::kX, &x_)},
                                         {DNNL_ARG_DIFF_DST, Import(dy, WinogradMemory::kY, &y_)},
                                         {DNNL_ARG_DIFF_WEIGHTS, backward_weights_.weights},
                                         {DNNL_ARG_SCRATCHPAD, Scratch(backward_weights_)}});
    w_.set_data_handle(dw.As<float>());
    backward_weights_.reorder.execute(stream_, backward_weights_.weights, w_);
  });
}

}  // namespace assay
