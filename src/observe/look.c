/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a machine and of its GPUs, for a monitor of either kind. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "observe/monitor.h"

void sac_monitor_find_cards(sac_monitor *m, const char *library)
{
    m->nvml = sac_nvml_open(library);
    const int count = SAC_MIN(sac_nvml_count(m->nvml), (int)SAC_MONITOR_GPUS);
    for (int i = 0; i < count; i++) {
        const int at = m->card_count;
        if (!sac_nvml_find_index(m->nvml, i, &m->card[at]))
            continue;
        if (!sac_nvml_name(m->nvml, m->card[at], m->card_name[at], sizeof m->card_name[at]))
            snprintf(m->card_name[at], sizeof m->card_name[at], "GPU %d", i);
        m->card_count++;
    }
}

sac_result sac_monitor_create(sac_context *ctx, const struct sac_monitor_params *params,
                              sac_monitor **out)
{
    SAC_NEEDS(ctx, ctx);
    SAC_NEEDS(ctx, out);
    sac_result res = sac_monitor_create_empty(ctx, params, out);
    if (res == SAC_OK)
        sac_monitor_find_cards(*out, NULL);
    return res;
}

void sac_monitor_put_machine(sac_monitor *m, const struct sac_machine_load *load)
{
    sac_monitor_put(m, SAC_ALARM_LOAD, "share", load->cpu, "cpu");
    sac_monitor_put(m, SAC_ALARM_FULL, "share", load->memory, "memory");
    if (!isnan(load->stolen))
        sac_monitor_put(m, SAC_ALARM_STOLEN, "share", load->stolen, "cpu stolen");
    if (!isnan(load->held))
        sac_monitor_put(m, SAC_ALARM_NOTHING, "share", load->held, "cpu held back");
    if (!isnan(load->disk))
        sac_monitor_put(m, SAC_ALARM_NOTHING, "share", load->disk, "disk wait");
}

static double share_of(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

void sac_monitor_put_gpu(sac_monitor *m, int i, double busy, double decoder, double encoder,
                         const struct sac_gpu_stats *s)
{
    const struct {
        const char         *name, *unit;
        enum sac_alarm_rule rule;
        double              value;
    } rows[] = {
        {"utilisation", "share", SAC_ALARM_LOAD, busy},
        {"decoder", "share", SAC_ALARM_LOAD, decoder},
        {"encoder", "share", SAC_ALARM_NOTHING, encoder},
        {"memory", "share", SAC_ALARM_FULL,
         share_of((double)s->memory_bytes, (double)s->memory_total_bytes)},
        {"memory used", "bytes", SAC_ALARM_BYTES, (double)s->memory_bytes},
        {"temperature", "C", SAC_ALARM_HEAT, s->temperature_c ? s->temperature_c : NAN},
        {"power", "W", SAC_ALARM_NOTHING, s->power_mw ? s->power_mw * 1e-3 : NAN},
        {"power of its limit", "share", SAC_ALARM_POWER, share_of(s->power_mw, s->power_limit_mw)},
        {"clock", "MHz", SAC_ALARM_NOTHING, s->clock_mhz ? s->clock_mhz : NAN},
        {"memory clock", "MHz", SAC_ALARM_NOTHING, s->memory_clock_mhz ? s->memory_clock_mhz : NAN},
        {"throttled by heat", "share", SAC_ALARM_THROTTLE, (s->throttle & SAC_THROTTLE_HEAT) != 0},
        {"throttled by power", "share", SAC_ALARM_THROTTLE,
         (s->throttle & SAC_THROTTLE_POWER) != 0},
        {"throttled by hardware", "share", SAC_ALARM_THROTTLE,
         (s->throttle & SAC_THROTTLE_HARDWARE) != 0},
        {"bus to it", "MB/s", SAC_ALARM_NOTHING, s->pcie_rx_kb_s * 1e-3},
        {"bus from it", "MB/s", SAC_ALARM_NOTHING, s->pcie_tx_kb_s * 1e-3},
        {"processes", "", SAC_ALARM_NOTHING, s->processes},
    };
    for (size_t r = 0; r < SAC_COUNT(rows); r++)
        sac_monitor_put(m, rows[r].rule, rows[r].unit, rows[r].value, "gpu%d %s", i, rows[r].name);
}

static void put_card(sac_monitor *m, int i)
{
    struct sac_nvml_sample s;
    sac_nvml_sample(m->nvml, m->card[i], &s);
    const struct sac_gpu_stats state = {
        .memory_bytes = s.memory_bytes,
        .memory_total_bytes = s.memory_total_bytes,
        .temperature_c = s.temperature_c,
        .power_mw = s.power_mw,
        .power_limit_mw = s.power_limit_mw,
        .clock_mhz = s.clock_mhz,
        .memory_clock_mhz = s.memory_clock_mhz,
        .pcie_rx_kb_s = s.pcie_rx_kb_s,
        .pcie_tx_kb_s = s.pcie_tx_kb_s,
        .processes = s.processes,
        .throttle = s.throttle,
    };
    sac_monitor_put_processes(m, i, s.process, s.listed);
    sac_monitor_put_gpu(m, i, s.busy_known ? s.busy * 0.01 : NAN, s.decoder * 0.01,
                        s.encoder * 0.01, &state);
}

static int64_t thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void sac_monitor_sample(sac_monitor *m)
{
    if (!m)
        return;
    const int64_t           begun = thread_cpu_ns();
    struct sac_machine_load load;
    sac_machine_look(&m->machine, &load);
    sac_monitor_begin(m);
    sac_monitor_put_machine(m, &load);
    for (int i = 0; i < m->card_count; i++)
        put_card(m, i);
    sac_monitor_end(m);
    pthread_mutex_lock(&m->lock);
    m->cost_ns += thread_cpu_ns() - begun;
    pthread_mutex_unlock(&m->lock);
}
