/* SPDX-License-Identifier: Apache-2.0 */
/* What every fallible function returns.
 *
 * 0 is success, all others are negative. SAC_AGAIN and SAC_EOS are states that a loop expects; the
 * rest are faults, and the sentence that belongs to a fault is kept in the context
 * (sac_context_last_error). Outputs stay untouched on failure.
 */
#ifndef SACCADE_RESULT_H
#define SACCADE_RESULT_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SAC_API __attribute__((visibility("default")))
#else
#define SAC_API
#endif

/* The result of a function. */
typedef enum sac_result {
    SAC_OK = 0,
    SAC_AGAIN = -1,           /* nothing yet; call again later */
    SAC_EOS = -2,             /* the stream has ended */
    SAC_ERR_ARG = -3,         /* the caller's mistake */
    SAC_ERR_MEMORY = -4,      /* no host or device memory */
    SAC_ERR_IO = -5,          /* the system failed to open, read or write */
    SAC_ERR_FORMAT = -6,      /* damaged or inconsistent data from outside */
    SAC_ERR_UNSUPPORTED = -7, /* well-formed, but not something this build can do */
    SAC_ERR_DEVICE = -8,      /* a device or its library failed */
    SAC_ERR_LIMIT = -9,       /* over a bound, mostly of memory, that was configured */
    SAC_ERR_CANCELLED = -10,  /* stopped by request */
    SAC_ERR_INTERNAL = -11,   /* a bug in the library */
    SAC_ERR_COPY = -12        /* a copy of frame or tensor data in strict mode (device.h) */
} sac_result;

/* A constant lower-case word for a result ("ok", "again", ..., "internal error"). Any thread. */
SAC_API const char *sac_result_name(sac_result res);

#ifdef __cplusplus
}
#endif
#endif
