/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload that does nothing: what being loaded costs any library, so that the
 * shim's own share can be told apart.
 */
int lifecycle_empty;
