/** Owns the first arguments by which the binary is another process than daemon, client or operator's tool: those that it starts for itself. */

/** What a template is built in. */
export const BUILD_WORKER = "build-worker";
/** What a backup to an object store is made in. */
export const BACKUP_WORKER = "backup-worker";
/** The end of the way out of the network in which an image is fetched. */
export const FETCH_RELAY = "fetch-relay";
