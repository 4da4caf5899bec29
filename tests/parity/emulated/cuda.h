/* SPDX-License-Identifier: Apache-2.0 */
typedef struct emulated_context *CUcontext;
