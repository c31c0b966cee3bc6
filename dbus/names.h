/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The names of org.gpuarb.Arbiter1.xml, for the daemon and its clients. */

#define GPUARB_BUS_NAME "org.gpuarb.Arbiter1"
#define GPUARB_PATH "/org/gpuarb/Arbiter1"
#define GPUARB_PATH_GPU GPUARB_PATH "/gpu"
#define GPUARB_PATH_LEASE GPUARB_PATH "/lease"
#define GPUARB_INTERFACE "org.gpuarb.Arbiter1"
#define GPUARB_INTERFACE_GPU "org.gpuarb.Arbiter1.Gpu"
#define GPUARB_INTERFACE_LEASE "org.gpuarb.Arbiter1.Lease"

#define GPUARB_ERROR "org.gpuarb.Arbiter1.Error."
#define GPUARB_ERROR_INVALID_REQUEST GPUARB_ERROR "InvalidRequest"
#define GPUARB_ERROR_INVALID_STATE GPUARB_ERROR "InvalidState"
#define GPUARB_ERROR_TOKEN_CONFLICT GPUARB_ERROR "TokenConflict"
#define GPUARB_ERROR_NOT_PERMITTED GPUARB_ERROR "NotPermitted"
#define GPUARB_ERROR_QUOTA_EXCEEDED GPUARB_ERROR "QuotaExceeded"
#define GPUARB_ERROR_NO_CAPACITY GPUARB_ERROR "NoCapacity"
#define GPUARB_ERROR_NEVER_FITS GPUARB_ERROR "NeverFits"
#define GPUARB_ERROR_NO_SUCH_GPU GPUARB_ERROR "NoSuchGpu"
#define GPUARB_ERROR_NO_SUCH_LEASE GPUARB_ERROR "NoSuchLease"
#define GPUARB_ERROR_NO_SUCH_TENANT GPUARB_ERROR "NoSuchTenant"
#define GPUARB_ERROR_NOT_SUPPORTED GPUARB_ERROR "NotSupported"
#define GPUARB_ERROR_NOT_SAVED GPUARB_ERROR "NotSaved"
#define GPUARB_ERROR_TOO_MANY_LEASES GPUARB_ERROR "TooManyLeases"
#define GPUARB_ERROR_TIMED_OUT GPUARB_ERROR "TimedOut"
#define GPUARB_ERROR_SHUTDOWN GPUARB_ERROR "Shutdown"
