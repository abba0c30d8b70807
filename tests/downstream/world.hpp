// What the README's second example stands on: the set-up of its first one, and stand-ins for the
// kernels of a model. It knows nothing of what a request does.
#pragma once

#include <cairn/runtime.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

inline constexpr std::uint64_t unit_bytes = 4096;
inline constexpr std::uint64_t slot_bytes = 16384;
inline constexpr std::uint64_t image_bytes = 10000;
inline constexpr std::uint32_t units = 64;
inline constexpr std::uint32_t slots = 4;

template <class T>
T need(cairn::result<T> got) {
  if (!got) {
    std::fprintf(stderr, "%s\n", got.why().message().c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(got).value();
}

inline void need(cairn::status code) {
  if (code == cairn::status::ok) return;
  std::fprintf(stderr, "%s\n", cairn::to_string(code));
  std::exit(1);
}

inline cairn::deadline soon() {
  return cairn::clock::now() + std::chrono::seconds(30);
}

/// Members are destroyed from the bottom up: the runtime before the compute stream.
struct world {
  world() : kv(units * unit_bytes), state(slots * slot_bytes) {
    cairn::rank_memory memory;
    memory.regions = {{kv.data(), unit_bytes, unit_bytes}};
    memory.units = units;
    memory.segments = {{state.data(), slot_bytes, image_bytes}};
    memory.slots = slots;
    devices = need(cairn::make_host_backend());
    compute = need(devices->at(0).create_stream(cairn::stream_priority::normal));
    cairn::runtime_options options;
    options.shape = {unit_bytes, slot_bytes, image_bytes, "example-2"};
    options.ranks = {memory};
    checkpoints = need(cairn::runtime::open(std::move(options), *devices));
    need(checkpoints->attach(0, 0, *compute));
  }

  /// Enqueues a stand-in for a kernel on the compute stream.
  void launch(void (*kernel)(void* slot), cairn::slot_id slot) {
    need(devices->at(0).call(*compute, kernel, &state[slot * slot_bytes]));
  }
  /// How many steps the state in the slot has seen; only while nothing runs.
  [[nodiscard]] int steps_in(cairn::slot_id slot) const {
    return std::to_integer<int>(state[slot * slot_bytes + image_bytes - 1]);
  }

  std::vector<std::byte> kv;
  std::vector<std::byte> state;
  std::unique_ptr<cairn::backend> devices;
  std::unique_ptr<cairn::stream> compute;
  std::unique_ptr<cairn::runtime> checkpoints;
};

/// A new request's state.
inline void begin_state(void* slot) {
  std::memset(slot, 0, slot_bytes);
}
/// One step of the model: every byte of the state counts it.
inline void step(void* slot) {
  auto* bytes = static_cast<unsigned char*>(slot);
  for (std::uint64_t i = 0; i < slot_bytes; ++i) ++bytes[i];
}
