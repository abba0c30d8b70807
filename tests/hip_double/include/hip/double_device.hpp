// What kernels call, in the double. lane.hpp says what is behind it.
#pragma once

namespace cairn::tests::hip {

/// What an addition to memory answers. Where nobody asks for the old value, a device only posts it:
/// it takes effect at some time before the lane's next fence or its end. Here, at the last moment.
template <class Word>
class addition {
 public:
  addition(Word* at, Word by) noexcept : at_(at), by_(by) {}
  ~addition();
  addition(const addition&) = delete;
  addition& operator=(const addition&) = delete;
  operator Word();  // as HIP's own, which answers the value

 private:
  Word* at_;
  Word by_;
  bool asked_ = false;
};

}  // namespace cairn::tests::hip

/// Lanes of a wave, as the test says. Set by the thread that is a lane.
extern constinit thread_local int warpSize;

unsigned long long __shfl_xor(unsigned long long value, int distance);
unsigned __shfl(unsigned value, int lane);
void __syncwarp();
inline cairn::tests::hip::addition<unsigned long long> atomicAdd(unsigned long long* at,
                                                                 unsigned long long by) {
  return {at, by};
}
inline cairn::tests::hip::addition<unsigned> atomicAdd(unsigned* at, unsigned by) {
  return {at, by};
}
unsigned long long atomicExch(unsigned long long* at, unsigned long long value);
void __threadfence();
void __threadfence_system();
