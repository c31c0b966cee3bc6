# SPDX-License-Identifier: LGPL-2.1-or-later
"""Gives each Jupyter kernel a lease: copy it to ~/.ipython/profile_default/startup/. The lease ends
with the kernel. In a notebook, gpuarb_lease is the lease."""

import os
import sys

import gpuarb

try:
    gpuarb_lease = gpuarb.reserve(
        cus=os.environ.get('NOTEBOOK_CUS', '25%'), queues=4, name='notebook', wait=10)
    gpuarb_lease.set_environment()
    print(f'lease {gpuarb_lease.id}: {gpuarb_lease.cus} CUs of {gpuarb_lease.partition.gpu}')
except (gpuarb.Error, ValueError) as error:
    # Fail closed: without a lease, the GPUs are hidden from this kernel.
    os.environ['ROCR_VISIBLE_DEVICES'] = ''
    print(f'no lease, no GPU: {error}', file=sys.stderr)
