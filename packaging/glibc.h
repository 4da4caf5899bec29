/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every file of a bundle's build: where glibc 2.35 or later gave a function a second
 * version, the one that older systems have is linked. The old hypot sets errno at an overflow, no more. */
#if defined(__x86_64__) && defined(__linux__)
__asm__(".symver hypot,hypot@GLIBC_2.2.5");
#endif
