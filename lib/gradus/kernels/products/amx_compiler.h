#pragma once

// Highway has no AMX, so that its sources use the compiler's own names; on anything but x86-64 Linux with a
// compiler that knows AMX they are empty, and amx_ready() says no.

#if defined(__x86_64__) && defined(__linux__) &&      \
    ((defined(__clang__) && __clang_major__ >= 12) || \
     (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 11))
#define GRADUS_HAS_AMX 1
#define GRADUS_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl")))
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef __clang__  // g++ 12 takes undefined operands of its own AVX-512 functions for ours (GCC bug 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#else
#define GRADUS_HAS_AMX 0
#endif
