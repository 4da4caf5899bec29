/* SPDX-License-Identifier: Apache-2.0 */
/* NVML, which is opened at run time: the part of its interface that is used. A card, or a version
 * of NVML, that does not report a figure leaves it at 0.
 *
 *     struct sac_nvml *nvml = sac_nvml_open(NULL);
 *     if (nvml && sac_nvml_find(nvml, "0000:3b:00.0", &card))
 *         sac_nvml_sample(nvml, card, &sample);
 *     sac_nvml_close(&nvml);
 */
#ifndef SAC_OBSERVE_NVML_H
#define SAC_OBSERVE_NVML_H

#include "base/base.h"

struct sac_nvml;
typedef void *sac_nvml_card;

struct sac_nvml_process {
    int      pid; /* of the machine's own numbers: in a container it may be another one's */
    uint64_t memory_bytes; /* 0: not told */
};
enum { SAC_NVML_PROCESSES = 16 };

struct sac_nvml_sample {
    bool     busy_known;             /* the three loads are figures, not 0 for want of one */
    unsigned busy, decoder, encoder; /* per cent */
    uint64_t memory_bytes, memory_total_bytes;
    int      temperature_c, power_mw, power_limit_mw;
    int      clock_mhz, clock_max_mhz, memory_clock_mhz;
    int      pcie_rx_kb_s, pcie_tx_kb_s; /* to the card, and from it */
    int      processes;                  /* that compute on it, as far as NVML may tell */
    unsigned throttle;                   /* SAC_THROTTLE_... bits */
    /* Those that hold the most, the largest first. */
    struct sac_nvml_process process[SAC_NVML_PROCESSES];
    int                     listed;
};

/* library: NULL for NVML's usual name. NULL: not found; nothing is logged. */
struct sac_nvml *sac_nvml_open(const char *library);
void             sac_nvml_close(struct sac_nvml **nvml);
int              sac_nvml_count(const struct sac_nvml *nvml);
bool sac_nvml_find(const struct sac_nvml *nvml, const char *pci_bus_id, sac_nvml_card *out);
bool sac_nvml_find_index(const struct sac_nvml *nvml, int index, sac_nvml_card *out);
bool sac_nvml_name(const struct sac_nvml *nvml, sac_nvml_card card, char *buf, size_t size);
/* All of it. NVML takes milliseconds of a core for that, and watches the bus for some 20 ms more.
 */
void sac_nvml_sample(const struct sac_nvml *nvml, sac_nvml_card card, struct sac_nvml_sample *out);
/* The three loads alone, and whether they are known; the rest of out stays. */
void sac_nvml_sample_loads(const struct sac_nvml *nvml, sac_nvml_card card,
                           struct sac_nvml_sample *out);

#endif
