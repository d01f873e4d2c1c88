/** Retention limits for ended executions: the agent applies them, and the interface documents them. */

/** Of each one's output, and for how long after its end. */
export const KEPT_OUTPUT_BYTES = 16 * 1024 * 1024;
export const KEPT_SECONDS = 600;
/** Of all together: as many full outputs as there may be running executions. */
export const KEPT_DISK_BYTES = 1024 * 1024 * 1024;
export const KEPT_MEMORY_BYTES = 16 * 1024 * 1024;
/** Memory counted per execution, in addition to its texts and its output in memory. */
export const KEPT_EXECUTION_BYTES = 4096;
/** Names that callers gave, of executions that are not kept any more: none of them is run again. */
export const KEPT_NAMES = 65_536;
