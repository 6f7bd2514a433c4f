/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. The figures that both reports derive from what was measured. Integers only, so that
 * results.json is the same on every machine.
 */
#include "bench/report.h"

#include <string.h>

const struct step *report_step(const struct row_result *result, const char *name) {
    for (unsigned i = 0; i < result->step_count; i++)
        if (result->status == ROW_DONE && strcmp(result->steps[i].name, name) == 0)
            return &result->steps[i];
    return NULL;
}

static int64_t permille(int64_t part, int64_t whole) {
    return whole > 0 ? (part * 1000 + whole / 2) / whole : 0;
}

/* Row 0, unless the step is of another workload than its. */
static unsigned first_row(const struct report *report, const char *name) {
    for (unsigned i = 0; i < report->row_count; i++)
        if (report_step(&report->rows[i], name) || scenario_published(report->rows[i].row, name))
            return i;
    return 0;
}

int64_t report_ratio(const struct report *report, unsigned row, const char *name) {
    const struct step *first = report_step(&report->rows[first_row(report, name)], name);
    const struct step *step = report_step(&report->rows[row], name);

    return first && step ? permille(step->ns, first->ns) : 0;
}

int64_t report_published_ratio(const struct report *report, unsigned row, const char *name) {
    const struct published *first =
        scenario_published(report->rows[first_row(report, name)].row, name);
    const struct published *published = scenario_published(report->rows[row].row, name);

    return first && published && !first->below ? permille(published->ns, first->ns) : 0;
}

enum order report_order(const struct report *report, const char *name) {
    enum order order = ORDER_NONE;

    for (unsigned i = 0; i < report->row_count; i++) {
        for (unsigned j = i + 1; j < report->row_count; j++) {
            const struct published *p = scenario_published(report->rows[i].row, name);
            const struct published *q = scenario_published(report->rows[j].row, name);
            const struct step *a = report_step(&report->rows[i], name);
            const struct step *b = report_step(&report->rows[j], name);
            if (!p || !q || !a || !b || p->ns == q->ns)
                continue;
            if ((p->ns < q->ns) != (a->ns < b->ns))
                return ORDER_DIFFERS;
            order = ORDER_AGREES;
        }
    }
    return order;
}
