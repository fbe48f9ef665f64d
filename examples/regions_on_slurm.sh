#!/bin/sh
#SBATCH --job-name=poolgrad
#SBATCH --array=0-3
#SBATCH --cpus-per-task=1
#SBATCH --output=poolgrad-%A_%a.txt
# Share the regions of a job among the tasks of a Slurm array:
#
#     python examples/shared_regions.py in.zarr out.zarr --create
#     sbatch examples/regions_on_slurm.sh in.zarr out.zarr
#
# Task i of n computes job.regions(...)[i::n]. Start failed tasks again with sbatch --array=3,7 and the same TASKS: they write the same bytes.
# EXAMPLES is the folder of shared_regions.py: Slurm copies this script elsewhere.
set -eu
export POOLGRAD_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
exec "${PYTHON:-python3}" "${EXAMPLES:-examples}/shared_regions.py" "$1" "$2" \
    --worker "$SLURM_ARRAY_TASK_ID" --workers "${TASKS:-$SLURM_ARRAY_TASK_COUNT}" --memory "${MEMORY:-200MB}"
