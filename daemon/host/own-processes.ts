/** First arguments that make the binary another process than daemon, client or operator's tool: those that it starts for itself. */

/** Process that builds a template. */
export const BUILD_WORKER = "build-worker";
/** Process that makes a backup to an object store. */
export const BACKUP_WORKER = "backup-worker";
/** The end of the relay out of the network namespace in which an image is fetched. */
export const FETCH_RELAY = "fetch-relay";
