/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "wrap.h"

void print_wrapped(FILE *out, const char *text, const char *first, const char *rest, int width)
{
    int column = fprintf(out, "%s", first), words = 0;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (words && column + 1 + length > width) {
            column = fprintf(out, "\n%s", rest) - 1;
            words = 0;
        }
        column += fprintf(out, "%s%.*s", words ? " " : "", length, text);
        words++;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void print_clean(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

int print_json(struct sac_json *json, struct fault *fault)
{
    sac_text_add(json->text, "\n");
    const bool failed = json->text->failed;
    if (!failed)
        fwrite(json->text->data, 1, json->text->length, stdout);
    sac_text_finish(json->text);
    return failed ? fault_failure(fault, "out of memory") : STATUS_OK;
}
