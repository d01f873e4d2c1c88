/** Retention limits for ended executions: the agent applies them, and the interface documents them. */

/** Limits of stored output per execution: size, and time after the execution's end. */
export const KEPT_OUTPUT_BYTES = 16 * 1024 * 1024;
export const KEPT_SECONDS = 600;
/** Limit for all executions together: the full outputs of the maximum number of running executions. */
export const KEPT_DISK_BYTES = 1024 * 1024 * 1024;
export const KEPT_MEMORY_BYTES = 16 * 1024 * 1024;
/** Memory counted per execution, in addition to its texts and its output in memory. */
export const KEPT_EXECUTION_BYTES = 4096;
/** Number of client-chosen names of dropped executions that are remembered: such a name is not run again. */
export const KEPT_NAMES = 65_536;
