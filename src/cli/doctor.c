/* SPDX-License-Identifier: Apache-2.0 */
/* saccade doctor: prints what sac_doctor_run finds. */
#include <string.h>

#include <saccade/doctor.h>

#include "term.h"
#include "verbs.h"
#include "wrap.h"

struct report {
    struct sac_text text;
    struct sac_json json;
    bool            as_json;
    char            area[32]; /* of the previous finding */
    int             missing, faults;
};

static const char *level_name(enum sac_finding_level level)
{
    static const char *const names[] = {"ok", "note", "missing", "fault"};
    return names[level];
}

static void json_finding(struct report *report, const struct sac_finding *finding)
{
    sac_json_open(&report->json, NULL, '{');
    sac_json_string(&report->json, "area", finding->area);
    sac_json_string(&report->json, "level", level_name(finding->level));
    sac_json_string(&report->json, "text", finding->text);
    sac_json_string(&report->json, "mend", finding->mend);
    sac_json_close(&report->json, '}');
}

static void print_text(struct report *report, const struct sac_finding *finding)
{
    bool again = strcmp(report->area, finding->area) == 0;
    printf("%-8s %-8s %s\n", again ? "" : finding->area, level_name(finding->level), finding->text);
    if (finding->mend)
        printf("%-8s %-8s fix it with: %s\n", "", "", finding->mend);
    snprintf(report->area, sizeof report->area, "%s", finding->area);
}

static void on_finding(void *user, const struct sac_finding *finding)
{
    struct report *report = user;
    report->missing += finding->level == SAC_FINDING_MISSING;
    report->faults += finding->level == SAC_FINDING_FAULT;
    if (report->as_json)
        json_finding(report, finding);
    else
        print_text(report, finding);
}

int verb_doctor(struct settings *s, struct fault *fault)
{
    struct report report = {.json = {.spaced = true}, .as_json = s->json};
    sac_context  *ctx = NULL;
    int           status = term_context(s, &ctx, fault);
    if (status != STATUS_OK)
        return status;
    report.json.text = &report.text;
    if (s->json) {
        sac_json_open(&report.json, NULL, '{');
        sac_json_string(&report.json, "version", sac_version());
        sac_json_open(&report.json, "findings", '[');
    } else {
        printf("saccade %s\n", sac_version());
    }
    sac_doctor_run(ctx, on_finding, &report);
    if (s->json) {
        sac_json_close(&report.json, ']');
        sac_json_close(&report.json, '}');
        status = print_json(&report.json, fault);
    } else if (!report.faults) {
        printf("Tracking works on this machine%s.\n",
               report.missing ? "; with what is missing above it would be faster or support more"
                              : "");
    }
    sac_context_destroy(&ctx);
    if (report.faults)
        return fault_failure(fault, "tracking can't run on this machine: see the faults above");
    return status;
}
