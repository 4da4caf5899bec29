/* SPDX-License-Identifier: Apache-2.0 */
/* serve MODEL.onnx [DEVICE]: a model that answers requests, some of them before others. */
#include <stdio.h>
#include <stdlib.h>

#include <saccade/saccade.h>

enum { REQUESTS = 24 };

int main(int argc, char **argv)
{
    sac_context *ctx = NULL;
    sac_device  *dev = NULL;
    sac_model   *model = NULL;
    sac_server  *server = NULL;
    sac_tensor  *x = NULL;
    sac_request *requests[REQUESTS] = {NULL};
    if (argc < 2) {
        fprintf(stderr, "usage: %s MODEL.onnx [DEVICE]\n", argv[0]);
        return 2;
    }
    struct sac_server_params params = sac_server_params_default();
    params.batch_max = 8;
    params.host_outputs = 1;
    sac_result res = sac_context_create(NULL, &ctx);
    if (res == SAC_OK)
        res = sac_device_open(ctx, argc > 2 ? argv[2] : "auto", NULL, &dev);
    if (res == SAC_OK)
        res = sac_model_load(dev, argv[1], NULL, &model);
    if (res == SAC_OK)
        res = sac_server_create(model, &params, &server);
    if (res == SAC_OK)
        res = sac_tensor_create(dev, sac_server_input(server, 0), "my input", &x);
    void *zeros = x ? calloc(1, (size_t)sac_tensor_desc_bytes(sac_server_input(server, 0))) : NULL;
    if (res == SAC_OK)
        res = sac_tensor_upload(x, zeros);
    for (int i = 0; i < REQUESTS && res == SAC_OK; i++) { /* any thread may do this */
        struct sac_request_params request = sac_request_params_default();
        request.id = i;
        request.priority = i % 3 == 0; /* every third goes before the others */
        request.deadline_us = 50000;
        res = sac_server_submit(server, &x, &request, &requests[i]);
    }
    for (int i = 0; i < REQUESTS && res == SAC_OK; i++) {
        struct sac_answer a;
        res = sac_request_wait(requests[i], -1, &a);
        if (res == SAC_OK)
            printf("request %2lld, priority %d: %.2f ms, of which %.2f in the queue, in a batch of "
                   "%d%s\n",
                   (long long)a.id, a.priority, (double)a.latency_ns / 1e6,
                   (double)a.queue_ns / 1e6, a.batch, a.late ? ", too late" : "");
    }
    if (res != SAC_OK) {
        char why[512];
        sac_context_last_error(ctx, why, sizeof why);
        fprintf(stderr, "%s: %s\n", argv[0], why);
    }
    for (int i = 0; i < REQUESTS; i++)
        sac_request_unref(&requests[i]);
    free(zeros);
    sac_tensor_unref(&x);
    sac_server_destroy(&server);
    sac_model_unref(&model);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return res == SAC_OK ? 0 : 1;
}
